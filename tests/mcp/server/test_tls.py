"""Serving hides OpenSSL from asyncio to start light; fetching over TLS works all the same."""

from __future__ import annotations

import ipaddress
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.mcp.server.peer import Peer, text_of


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<html><body><h1>Sealed</h1><p>over TLS</p></body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a key and a certificate for this machine that signs itself."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def port(certificate: tuple[Path, Path]) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # refused handshakes
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_a_page_is_fetched_over_tls_by_the_serving_process(
    port: int, certificate: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with Peer(root=tmp_path, allow_loopback=True) as peer:
        peer.hello()
        for host in ("localhost", "127.0.0.1"):
            result = peer.call("web_fetch", url=f"https://{host}:{port}/")
            assert not result["isError"], text_of(result)
            assert "# Sealed" in text_of(result) and "over TLS" in text_of(result)
        assert text_of(peer.call("bash", command="echo on")) == "on"
        assert peer.finish() == 0
        assert peer.stderr() == ""


def test_a_certificate_nobody_vouches_for_is_refused(port: int, tmp_path: Path) -> None:
    with Peer(root=tmp_path, allow_loopback=True) as peer:
        peer.hello()
        result = peer.call("web_fetch", url=f"https://localhost:{port}/")
        assert result["isError"] and "certificate" in text_of(result)
