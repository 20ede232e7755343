"""How build requirements are installed: from the indexes of the settings alone, with their logins, as wheels alone."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from stackfix.quick import replace
from stackfix.sources.address import parse_address, without_credentials
from stackfix.sources.credentials import Credentials
from stackfix.sources.page import normalise
from stackfix.sources.records import IndexSettings
from stackfix.sources.sdist_build_python import build_environment, find_uv


class NotFollowed(Exception):
    """Why something is not installed. The text is fit to be shown."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


def with_logins(settings: IndexSettings, credentials: Credentials) -> IndexSettings:
    """The settings with the login of each index in its address, wherever our own client has it from."""
    return replace(settings, indexes=tuple(_with_login(url, credentials) for url in settings.indexes))


def _with_login(url: str, credentials: Credentials) -> str:
    header = credentials.header_for(parse_address(url)) or ""
    kind, _, word = header.partition(" ")
    parts = urlsplit(without_credentials(url))
    if kind != "Basic":
        return urlunsplit(parts)
    user, _, password = base64.b64decode(word).decode("utf-8", "replace").partition(":")
    return urlunsplit(parts._replace(netloc=f"{quote(user, safe='')}:{quote(password, safe='')}@{parts.netloc}"))


def requirement_line(text: object, settings: IndexSettings) -> str:
    """One build requirement, as an installer may be given it: no option, no address. Raises NotFollowed."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        found = Requirement(text) if isinstance(text, str) else None
    except InvalidRequirement:
        found = None
    if found is None:
        raise NotFollowed(f"its build requirement {str(text)[:100]!r} is no requirement")
    if found.url is not None:
        raise NotFollowed(f"its build requirement {str(text)[:100]!r} comes from an address of its own, and only the"
                          " index is asked")
    if any(route.project == normalise(found.name) for route in settings.routes):
        raise NotFollowed(f"its build requirement {found.name} is pinned to an index of its own, which builds do not"
                          " follow")
    return str(found)


def refuse_pinned(environment: Path, settings: IndexSettings) -> None:
    """Raises NotFollowed where a project that the settings pin to an index was installed into `environment`.

    Requirements of requirements are the installer's to find, which knows of no pins. Only names of folders are read:
    what was installed may not run before it is known where it should have come from. A folder `a-b-1.0.dist-info`
    may be of a-b or of a; below `site-packages` others keep copies of theirs (setuptools does).
    """
    pinned = {route.project for route in settings.routes}
    found = (path.name.removesuffix(".dist-info") for pattern in ("lib*/python*/site-packages", "Lib/site-packages")
             for path in sorted(environment.glob(f"{pattern}/*.dist-info")))
    for name in found:
        heads = {name[:at] for at, letter in enumerate(name) if letter == "-"}
        for head in sorted(heads, key=len, reverse=True):
            if normalise(head) in pinned:
                raise NotFollowed(f"its build requirements ask for {head}, which is pinned to an index of its own, and"
                                  " builds do not follow that")


def installer_words(python: str, environ: Mapping[str, str], settings: IndexSettings) -> list[str]:
    """The command that installs into the environment of `python`: uv where it is, else pip. Raises NotFollowed."""
    if not settings.indexes:
        raise NotFollowed("no index is set that could have its build requirements")
    uv = find_uv(environ)
    if uv is not None:
        return [*uv, "pip", "install", "--quiet", "--no-progress", "--no-config", "--no-cache", "--no-build",
                "--python", python]
    if len(settings.indexes) > 1:
        raise NotFollowed("several indexes are set, and pip would mix their files",
                          "install uv: it takes each project from the first index that has it, as lock does")
    return [sys.executable, "-I", "-m", "pip", "--python", python, "install", "--quiet", "--no-cache-dir",
            "--only-binary", ":all:", "--no-warn-script-location"]


def installer_environment(environ: Mapping[str, str], own: Path, settings: IndexSettings) -> dict[str, str]:
    """What the installer sees: these indexes and no other, with their logins, and its `own` folder.

    By environment, since every user of a machine can read a command line. It installs wheels alone, so that no code
    of a package runs that could read it.
    """
    made = build_environment(environ, own)
    for name in ("PIP_NO_INDEX", "UV_OFFLINE"):
        del made[name]
    *first, last = settings.indexes
    seconds, retries = str(max(1, int(settings.timeout))), str(settings.retries)
    made |= {
        "UV_DEFAULT_INDEX": last, "UV_HTTP_TIMEOUT": seconds, "UV_HTTP_RETRIES": retries,
        "PIP_INDEX_URL": last, "PIP_DEFAULT_TIMEOUT": seconds, "PIP_RETRIES": retries,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1", "NETRC": str(own / "netrc"),
    }
    if first:
        made["UV_INDEX"] = " ".join(first)
    for scheme, proxy in settings.proxies:
        made[f"{scheme}_proxy"] = made[f"{scheme.upper()}_PROXY"] = proxy
    if settings.no_proxy is not None:
        made["no_proxy"] = made["NO_PROXY"] = settings.no_proxy
    if settings.cert is not None:
        made["SSL_CERT_FILE"] = made["PIP_CERT"] = made["REQUESTS_CA_BUNDLE"] = settings.cert
    else:
        made["UV_SYSTEM_CERTS"] = made["UV_NATIVE_TLS"] = "true"    # as our own client does; the older name of it
    return made


def lay_out(own: Path, requires: Iterable[str], settings: IndexSettings) -> Path:
    """The file that lists what to install, in the installer's own folder, with a home and a netrc of the logins."""
    for name in ("home", "tmp"):
        (own / name).mkdir()
    lines = [f"machine {host} login {user} password {password}\n" for host, user, password in settings.netrc
             if not any(character.isspace() for character in f"{host}{user}{password}")]
    descriptor = os.open(own / "netrc", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(lines)
    listed = own / "requires.txt"
    listed.write_text("".join(f"{line}\n" for line in sorted(requires)), encoding="utf-8")
    return listed


def without_secrets(text: str, settings: IndexSettings) -> str:
    """`text` in which no login of the settings stands."""
    secrets = {password for _, _, password in settings.netrc}
    for url in (*settings.indexes, *(proxy for _, proxy in settings.proxies)):
        login = urlsplit(url).netloc.rpartition("@")[0]
        password = login.partition(":")[2]
        secrets |= {login, unquote(login), password, unquote(password)}
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "****")
    return text
