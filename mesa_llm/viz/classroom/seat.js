// Loads the page again when it has something new to show.
const shown = document.getElementById("version").dataset.version;
let isSending = false; // loading the page again would cut off an answer on its way
async function look() {
  try {
    const reply = await fetch("/join/now", { cache: "no-store" });
    const isNew = reply.ok && (await reply.text()) !== shown;
    if (isSending) return;
    if (isNew) return location.replace("/join/seat");
  } catch (error) {
    // the server is away for a moment; the next look may find it
  }
  setTimeout(look, 1500);
}
setTimeout(look, 1500);

// A second click sends nothing.
document.addEventListener("submit", (event) => {
  isSending = true;
  setTimeout(() => event.target.querySelectorAll("button").forEach((button) => { button.disabled = true; }));
});
