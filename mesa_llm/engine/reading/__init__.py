"""From a reply to what it says: reasoning apart from speech, calls, typed answers, and what is mended to read them."""
