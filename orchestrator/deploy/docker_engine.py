"""The connection to one Docker Engine, local or over our own SSH connection, and its errors as ours."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from docker import APIClient
from docker.errors import APIError, DockerException

from orchestrator.deploy import refusals
from orchestrator.deploy.dial import Dial, DialAdapter, dial_host, dial_tcp, dial_unix
from orchestrator.errors import RuntimeFailure, RuntimeUnavailable
from orchestrator.fleet.host import Host

CALL_S = 120.0
_SOCKET = "unix:///var/run/docker.sock"
_FIRST_WORDS_VERSION = "1.40"  # any that the SDK speaks: the one real question then is which version the engine has


class DockerEngine:
    """One Docker Engine.

    Nothing is asked of the host before the first call; connections, the API version and what the engine says of itself
    are kept from then on.

    Args:
        host: Where the engine is; a local host is reached by its socket, another one by `docker system dial-stdio`.
        docker_host: `DOCKER_HOST` for a local host; None takes the environment's.
    """

    def __init__(self, host: Host, *, docker_host: str | None = None) -> None:
        self._host = host
        self._docker_host = docker_host
        self._lock = threading.RLock()
        self._kept_client: APIClient | None = None
        self._kept_info: Mapping[str, Any] | None = None

    def client(self) -> APIClient:
        """The SDK's client over our connection."""
        with self._lock:
            if self._kept_client is None:
                adapter = DialAdapter(self.dial())
                with self.asking("answer"):
                    version = _new_client(adapter, _FIRST_WORDS_VERSION).version(api_version=False)["ApiVersion"]
                    self._kept_client = _new_client(adapter, version)
            return self._kept_client

    def info(self) -> Mapping[str, Any]:
        """What the engine says of itself (`docker info`)."""
        if self._kept_info is None:
            with self.asking("describe itself"):
                self._kept_info = self.client().info()
        return self._kept_info

    def close(self) -> None:
        """Close the connections; the host stays open."""
        with self._lock:
            client, self._kept_client = self._kept_client, None
        if client is not None:
            client.close()

    def dial(self) -> Dial:
        """How a new connection to the engine is made.

        Raises:
            RuntimeUnavailable: `DOCKER_HOST` names one that cannot be used.
        """
        if not self._host.is_local:
            return dial_host(self._host)
        address = self._local_address()
        parts = urlsplit(address)
        if parts.scheme == "unix":
            return dial_unix(parts.path)
        if parts.scheme == "tcp" and parts.hostname and not os.environ.get("DOCKER_TLS_VERIFY"):
            return dial_tcp(parts.hostname, parts.port or 2375)
        raise RuntimeUnavailable(
            f"{self._host.name}: DOCKER_HOST={address} cannot be used",
            hint="unset it or use unix:// or plain tcp://; for another machine name it with `--on user@host`",
        )

    def _local_address(self) -> str:
        return self._docker_host or os.environ.get("DOCKER_HOST") or _SOCKET

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Turn whatever the SDK and the connection can raise into our errors, once."""
        try:
            yield
        except APIError as error:
            raise RuntimeFailure(f"{self._host.name}: docker could not {what}: {words_of(error)}") from error
        except (requests.ReadTimeout, TimeoutError) as error:
            raise RuntimeUnavailable(
                f"{self._host.name}: docker gave no answer when asked to {what}",
                hint="on the host: `systemctl status docker`, `journalctl -u docker`",
            ) from error
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unreachable(error) from error
        except DockerException as error:
            raise RuntimeFailure(f"{self._host.name}: docker could not {what}: {error}") from error

    def _unreachable(self, error: Exception) -> RuntimeUnavailable:
        where = ("-H", self._local_address()) if self._host.is_local else ()
        asked = self._host.run(("docker", *where, "version", "--format", "{{.Server.Version}}"), timeout_s=20.0)
        if asked.is_ok:
            return RuntimeUnavailable(
                f"{self._host.name}: the connection to docker broke: {error}",
                hint="the daemon answers again: try again",
            )
        return refusals.engine_unreachable(self._host.name, asked.exit_code, asked.stderr)


def _new_client(adapter: DialAdapter, version: str) -> APIClient:
    # With a version given the SDK opens no connection by itself, and its own transport is replaced before the first.
    client = APIClient(base_url=_SOCKET, version=version, timeout=int(CALL_S))
    client.mount("http+docker://", adapter)
    return client


@contextmanager
def gone_is_fine() -> Iterator[None]:
    """404: not there; 409: being removed by somebody else."""
    try:
        yield
    except APIError as error:
        if error.status_code not in (404, 409):
            raise


def words_of(error: APIError) -> str:
    """What the engine said."""
    return str(error.explanation or error).strip()
