/** Installs the Debian packages that tests of real programs need. Where that is impossible, the tests are not run, and say why. */
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
export const missing = (programs: ReadonlyArray<string>, packages: ReadonlyArray<string>): string | undefined => {
  if (process.platform !== "linux") return "the programs of these tests run on Linux"
  if (programs.every(isProgram)) return undefined
  if (process.getuid?.() !== 0) return `only root can install ${packages.join(" ")}`
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

/** Whether there is no reason to skip the tests; prints the reason if there is one. */
export const said = (what: string, reason: string | undefined): boolean => {
  if (reason !== undefined) console.log(`skipped: tests of ${what}: ${reason}`)
  return reason === undefined
}
