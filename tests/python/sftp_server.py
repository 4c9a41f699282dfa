# SPDX-License-Identifier: BSD-3-Clause
"""Serves this machine's files by SFTP on loopback, to a client with a secret; says its port first."""

import asyncio

import asyncssh


class Server(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("someone", "secret")


async def main() -> None:
    keys = [asyncssh.generate_private_key("ssh-ed25519")]
    server = await asyncssh.listen(
        "127.0.0.1", 0, server_factory=Server, server_host_keys=keys, sftp_factory=True
    )
    print(server.get_port(), flush=True)
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(main())
