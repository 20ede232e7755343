"""Codes of builtin types and of operators (Itanium C++ ABI 5.1.5.2, 5.1.3)."""

from __future__ import annotations

from typing import Final

BUILTINS: Final = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double",
    "e": "long double", "g": "__float128", "z": "...", "Dd": "decimal64", "De": "decimal128", "Df": "decimal32",
    "Dh": "half", "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t", "Da": "auto", "Dc": "decltype(auto)",
    "Dn": "decltype(nullptr)",
}
# How literals of these types are written: by a suffix alone.
SUFFIXES: Final = {"i": "", "j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}

# Code to spelling and number of operands.
OPERATORS: Final = {
    "aN": ("&=", 2), "aS": ("=", 2), "aa": ("&&", 2), "ad": ("&", 1), "an": ("&", 2), "at": ("alignof ", 1),
    "aw": ("co_await ", 1), "az": ("alignof ", 1), "cl": ("()", 2), "cm": (",", 2), "co": ("~", 1), "dV": ("/=", 2),
    "da": ("delete[] ", 1), "de": ("*", 1), "dl": ("delete ", 1), "ds": (".*", 2), "dt": (".", 2), "dv": ("/", 2),
    "eO": ("^=", 2), "eo": ("^", 2), "eq": ("==", 2), "ge": (">=", 2), "gs": ("::", 1), "gt": (">", 2),
    "ix": ("[]", 2), "lS": ("<<=", 2), "le": ("<=", 2), "ls": ("<<", 2), "lt": ("<", 2), "mI": ("-=", 2),
    "mL": ("*=", 2), "mi": ("-", 2), "ml": ("*", 2), "mm": ("--", 1), "na": ("new[]", 3), "ne": ("!=", 2),
    "ng": ("-", 1), "nt": ("!", 1), "nw": ("new", 3), "oR": ("|=", 2), "oo": ("||", 2), "or": ("|", 2),
    "pL": ("+=", 2), "pl": ("+", 2), "pm": ("->*", 2), "pp": ("++", 1), "ps": ("+", 1), "pt": ("->", 2),
    "qu": ("?", 3), "rM": ("%=", 2), "rS": (">>=", 2), "rm": ("%", 2), "rs": (">>", 2), "ss": ("<=>", 2),
    "st": ("sizeof ", 1), "sz": ("sizeof ", 1), "nx": ("noexcept", 1), "te": ("typeid ", 1), "ti": ("typeid ", 1),
    "tr": ("throw", 0), "tw": ("throw ", 1), "cc": ("const_cast", 2), "dc": ("dynamic_cast", 2),
    "rc": ("reinterpret_cast", 2), "sc": ("static_cast", 2),
}
