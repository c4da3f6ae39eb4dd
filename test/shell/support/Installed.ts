/**
 * Installs the Debian packages that the servers of these tests come from. Where that is impossible, the tests are not run, and
 * say why.
 */
import { execFileSync } from "node:child_process"
import { accessSync, constants } from "node:fs"

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Why the programs cannot be used, if they cannot. Installs the packages if root may. */
const missing = (programs: ReadonlyArray<string>, packages: ReadonlyArray<string>): string | undefined => {
  if (process.platform !== "linux") return "the servers of these tests run on Linux"
  if (process.getuid?.() !== 0) return "the servers of these tests need root"
  if (programs.every(isProgram)) return undefined
  const install = () =>
    execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...packages], {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      stdio: ["ignore", "ignore", "pipe"]
    })
  try {
    try {
      install()
    } catch {
      execFileSync("apt-get", ["update", "-qq"], { stdio: ["ignore", "ignore", "pipe"] })
      install()
    }
  } catch {
    return `apt-get cannot install ${packages.join(" ")}`
  }
  return programs.every(isProgram) ? undefined : `${packages.join(" ")} lack ${programs.join(" or ")}`
}

const said = (what: string, reason: string | undefined): boolean => {
  if (reason !== undefined) console.log(`skipped: tests of ${what}: ${reason}`)
  return reason === undefined
}

/** Whether the tests can start an SSH server. */
export const hasSshd = said(
  "SSH",
  missing(["/usr/sbin/sshd", "/usr/bin/ssh-keygen", "/usr/bin/ssh-agent"], ["openssh-server", "openssh-client"])
)

/** Whether the tests can start a Docker daemon. */
export const hasDockerd = said(
  "Docker",
  missing(["/usr/sbin/dockerd", "/bin/busybox", "/bin/bash-static"], ["docker.io", "busybox-static", "bash-static"])
)
