/** Which servers of these tests there are. Where there are none, the tests are not run, and say why. */
import { missing, said } from "../../support/Debian.ts"

/** Why a server cannot be started, if it cannot. */
const lacking = (programs: ReadonlyArray<string>, packages: ReadonlyArray<string>): string | undefined =>
  process.platform === "linux" && process.getuid?.() !== 0
    ? "the servers of these tests need root"
    : missing(programs, packages)

/** Whether the tests can start an SSH server. */
export const hasSshd = said(
  "SSH",
  lacking(["/usr/sbin/sshd", "/usr/bin/ssh-keygen", "/usr/bin/ssh-agent"], ["openssh-server", "openssh-client"])
)

/** Whether the tests can start a Docker daemon. */
export const hasDockerd = said(
  "Docker",
  lacking(["/usr/sbin/dockerd", "/bin/busybox", "/bin/bash-static"], ["docker.io", "busybox-static", "bash-static"])
)
