"""Agent memories: bounded, recalled as text for prompts, and transferable to another run."""

from mesa_llm.memory.chat import ChatMemory
from mesa_llm.memory.entry import CHARACTERS_PER_TOKEN, EntryKind, EntryMemory, Memory, MemoryEntry, estimate_tokens
from mesa_llm.memory.factory import KINDS, MemoryMixin, MemorySpec, memory_from_json, open_memory, past_memory
from mesa_llm.memory.reflection import ReflectiveMemory
from mesa_llm.memory.stream import StreamMemory
from mesa_llm.memory.summary import SummaryMemory
from mesa_llm.memory.transfer import (
    AgentMemory,
    ReadOnlyMemory,
    SavedMemories,
    import_memory,
    neutral,
    saved_memories,
    scrambled,
    within_tokens,
)
from mesa_llm.memory.window import NoMemory, WindowMemory
from mesa_llm.text import one_line

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "KINDS",
    "AgentMemory",
    "ChatMemory",
    "EntryKind",
    "EntryMemory",
    "Memory",
    "MemoryEntry",
    "MemoryMixin",
    "MemorySpec",
    "NoMemory",
    "ReadOnlyMemory",
    "ReflectiveMemory",
    "SavedMemories",
    "StreamMemory",
    "SummaryMemory",
    "WindowMemory",
    "estimate_tokens",
    "import_memory",
    "memory_from_json",
    "neutral",
    "one_line",
    "open_memory",
    "past_memory",
    "saved_memories",
    "scrambled",
    "within_tokens",
]
