/**
 * A private OpenSSH server on a loopback port, with its own keys, and an unprivileged user of its own who may log in with a key
 * or a password. Nothing of `/etc/ssh` is read.
 */
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer, Redacted } from "effect"
import type { SshTarget } from "../../../packages/shell/src/domain/Target.ts"
import type { TransportSettings } from "../../../packages/shell/src/transport/TransportSettings.ts"
import { daemon, freePort } from "./Daemon.ts"

export interface SshServer {
  readonly port: number
  readonly user: string
  readonly password: Redacted.Redacted
  /** Has the keys `user`, `locked` (with the passphrase `open sesame`) and `stranger`, and the file `known_hosts`. */
  readonly folder: string
  /** The server's public key of a type, as its file has it. */
  readonly hostKey: (type: "ed25519" | "ecdsa") => string
  /** Waits until the server's log matches. */
  readonly said: (pattern: RegExp) => Effect.Effect<void>
  /** Logs in with the key; fields replace others. */
  readonly target: (fields?: Partial<Omit<SshTarget, "transport">>) => SshTarget
  /** Trusts the server, and knows the folder of keys. */
  readonly settings: TransportSettings
}

const keygen = (file: string, type: string, passphrase = "") =>
  execFileSync("/usr/bin/ssh-keygen", ["-q", "-t", type, "-N", passphrase, "-C", "test", "-f", file])

const configuration = (folder: string, port: number, more: ReadonlyArray<string>) =>
  [
    ...more,
    "ListenAddress 127.0.0.1",
    `Port ${port}`,
    `HostKey ${folder}/ed25519`,
    `HostKey ${folder}/ecdsa`,
    `AuthorizedKeysFile ${folder}/authorized_keys`,
    `PidFile ${folder}/sshd.pid`,
    "PermitRootLogin no",
    "PasswordAuthentication yes",
    "KbdInteractiveAuthentication no",
    "UsePAM no",
    "StrictModes no",
    "MaxSessions 100",
    "MaxStartups 100",
    ""
  ].join("\n")

/** A user that exists as long as the scope. Processes of the user end with it. */
const temporaryUser = (home: string, password: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const name = `dbtest-${randomBytes(4).toString("hex")}`
      execFileSync("/usr/sbin/useradd", ["-M", "-d", home, "-s", "/bin/bash", name])
      execFileSync("/usr/sbin/chpasswd", { input: `${name}:${password}\n` })
      execFileSync("/bin/chown", [name, home])
      return name
    }),
    (name) =>
      Effect.sync(() => {
        execFileSync("/bin/sh", ["-c", 'pkill -KILL -u "$1"; userdel -f "$1"', "sh", name], { stdio: "ignore" })
      })
  )

/** Starts a server; `more` are lines of its configuration, of which sshd takes the first that sets an option. */
export const make = (more: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-sshd-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    chmodSync(folder, 0o711)
    mkdirSync("/run/sshd", { recursive: true })
    mkdirSync(join(folder, "home"))
    keygen(join(folder, "ed25519"), "ed25519")
    keygen(join(folder, "ecdsa"), "ecdsa")
    keygen(join(folder, "user"), "ed25519")
    keygen(join(folder, "locked"), "ed25519", "open sesame")
    keygen(join(folder, "stranger"), "ed25519")
    const authorized = ["user", "locked"].map((name) => readFileSync(join(folder, `${name}.pub`), "utf8")).join("")
    writeFileSync(join(folder, "authorized_keys"), authorized, { mode: 0o644 })
    const port = yield* freePort
    const password = randomBytes(12).toString("hex")
    const user = yield* temporaryUser(join(folder, "home"), password)
    const config = join(folder, "sshd_config")
    writeFileSync(config, configuration(folder, port, more))
    const hostKey = (type: string) =>
      readFileSync(join(folder, `${type}.pub`), "utf8")
        .split(" ")
        .slice(0, 2)
        .join(" ")
    writeFileSync(join(folder, "known_hosts"), `[127.0.0.1]:${port} ${hostKey("ed25519")}\n`)
    // The server starts itself again for each connection, by its absolute path.
    const { said } = yield* daemon("/usr/sbin/sshd", { args: ["-D", "-e", "-f", config], ready: /Server listening/ })
    const server: SshServer = {
      port,
      user,
      password: Redacted.make(password),
      folder,
      hostKey,
      said,
      target: (fields = {}) => ({ transport: "ssh", host: "127.0.0.1", port, user, keyPath: "user", ...fields }),
      settings: { keyFolder: folder, knownHosts: [join(folder, "known_hosts")] }
    }
    return server
  })

export class Sshd extends Context.Tag("test/Sshd")<Sshd, SshServer>() {}

export const layer = Layer.scoped(Sshd, make())

/** Copies a file of known hosts, so that a test can change it. */
export const copyOf = (path: string, name: string): string => {
  const copy = `${path}.${name}`
  copyFileSync(path, copy)
  return copy
}
