/**
 * Which hosts an SSH transport trusts, with a real OpenSSH server that has an Ed25519 and an ECDSA key. Files of known hosts are
 * those that each test writes.
 */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { SshTarget } from "../../../packages/shell/src/domain/Target.ts"
import { type TransportSettings } from "../../../packages/shell/src/transport/TransportSettings.ts"
import * as Transports from "../../../packages/shell/src/transport/Transports.ts"
import { temporaryFolder } from "../../support/Database.ts"
import { lacks } from "../../support/Parts.ts"
import { runToEnd } from "../support/Programs.ts"
import * as Sshd from "../support/Sshd.ts"

/** A bench: files of known hosts with these texts, and connections that use them. */
const makeBench = Effect.fnUntraced(function* () {
  const server = yield* Sshd.Sshd
  const folder = yield* temporaryFolder
  const host = `[127.0.0.1]:${server.port}`
  const file = (name: string, ...lines: ReadonlyArray<string>) => {
    const path = join(folder, name)
    writeFileSync(path, lines.map((line) => `${line}\n`).join(""))
    return path
  }
  const connect = (settings: TransportSettings, fields: Partial<Omit<SshTarget, "transport">> = {}) =>
    Effect.scoped(Transports.make(server.target(fields), { ...server.settings, ...settings }))
  const printed = (type: "ed25519" | "ecdsa") =>
    execFileSync("/usr/bin/ssh-keygen", ["-lf", join(server.folder, `${type}.pub`)], { encoding: "utf8" }).split(
      " "
    )[1] ?? ""
  /** The server's key, and one of the same type that it does not have. */
  const [key, another] = [server.hostKey("ed25519"), readFileSync(join(server.folder, "stranger.pub"), "utf8").trim()]
  const refusal = (settings: TransportSettings, fields: Partial<Omit<SshTarget, "transport">> = {}) =>
    Effect.map(Effect.flip(connect(settings, fields)), (error) => {
      if (error._tag !== "TransportFailed") throw error
      assert.strictEqual(error.reason, "host key", error.details)
      return error.details
    })
  return { server, folder, host, file, connect, printed, key, another, refusal }
})

describe.skipIf(lacks("sshd"))("over SSH", () => {
  it.layer(Sshd.layer)("trust in SSH hosts", (it) => {
    it.scoped("SL-88: a host with a known key is trusted, one with another key is refused", () =>
      Effect.gen(function* () {
        const { another, connect, file, host, key, printed, refusal } = yield* makeBench()
        yield* connect({ knownHosts: [file("known", `${host} ${key}`)] })
        for (const acceptNew of [false, true]) {
          const changed = file("changed", `${host} ${another}`)
          const details = yield* refusal({ knownHosts: [changed], ownKnownHosts: file("own"), acceptNew })
          assert.include(
            details,
            `${host} presents the ssh-ed25519 key ${printed("ed25519")}, but another key is known`
          )
          assert.include(details, changed)
        }
      })
    )

    it.scoped("SL-88: an expected fingerprint decides instead of the files, except for revoked keys", () =>
      Effect.gen(function* () {
        const { another, connect, file, host, key, printed, refusal } = yield* makeBench()
        const fingerprint = printed("ed25519")
        yield* connect({ knownHosts: [] }, { fingerprint })
        yield* connect({ knownHosts: [] }, { fingerprint: `${fingerprint}=` })
        yield* connect({ knownHosts: [file("changed", `${host} ${another}`)] }, { fingerprint })
        const expected = printed("ecdsa")
        const details = yield* refusal({ knownHosts: [file("known", `${host} ${key}`)] }, { fingerprint: expected })
        assert.include(details, `${fingerprint}, not the expected ${expected}`)
        const revoked = file("revoked", `${host} ${key}`, `@revoked * ${key}`)
        assert.include(yield* refusal({ knownHosts: [revoked] }), "revokes")
        assert.include(yield* refusal({ knownHosts: [revoked] }, { fingerprint }), "revokes")
      })
    )

    it.scoped("SL-89: a host that no line names is refused, with its fingerprint", () =>
      Effect.gen(function* () {
        const { file, key, printed, refusal } = yield* makeBench()
        for (const line of ["", `other.example ${key}`, `127.0.0.1 ${key}`, `@cert-authority * ${key}`]) {
          const details = yield* refusal({ knownHosts: [file("known", line)] })
          assert.include(details, `${printed("ed25519")}, which no file of known hosts has`)
        }
      })
    )

    it.scoped("SL-89: an accepted host is remembered in Daybook's own file, which only the user reads", () =>
      Effect.gen(function* () {
        const { connect, file, folder, host, key } = yield* makeBench()
        const settings = { knownHosts: [file("known")], ownKnownHosts: join(folder, "new", "known_hosts") }
        yield* connect({ ...settings, acceptNew: true })
        assert.strictEqual(readFileSync(settings.ownKnownHosts, "utf8"), `${host} ${key}\n`)
        assert.strictEqual(statSync(settings.ownKnownHosts).mode & 0o777, 0o600)
        assert.strictEqual(readFileSync(settings.knownHosts[0] ?? "", "utf8"), "")
        yield* connect(settings)
        yield* connect({ ...settings, acceptNew: true })
        assert.strictEqual(readFileSync(settings.ownKnownHosts, "utf8"), `${host} ${key}\n`)
      })
    )

    it.scoped("SL-89: connections that accept the same host at once write one line, after a torn one too", () =>
      Effect.gen(function* () {
        const { connect, file, host, key } = yield* makeBench()
        const ownKnownHosts = file("own")
        writeFileSync(ownKnownHosts, `other.example ${key}`)
        const accept = connect({ knownHosts: [], ownKnownHosts, acceptNew: true })
        yield* Effect.all([accept, accept, accept, accept], { concurrency: "unbounded" })
        assert.strictEqual(readFileSync(ownKnownHosts, "utf8"), `other.example ${key}\n${host} ${key}\n`)
      })
    )

    it.scoped("SL-89: with a line that is not understood no new host is accepted", () =>
      Effect.gen(function* () {
        const { connect, file, host, key, refusal } = yield* makeBench()
        const known = file("known", `other.example ${key}`, `${host} ssh-ed25519 torn`)
        const settings = { knownHosts: [known], ownKnownHosts: file("own"), acceptNew: true }
        assert.include(yield* refusal(settings), `${known}:2 is not understood`)
        yield* connect({ knownHosts: [file("both", "garbage", `${host} ${key}`)] })
      })
    )

    it.scoped("SL-89: a key that cannot be remembered is not accepted", () =>
      Effect.gen(function* () {
        const { file, folder, refusal } = yield* makeBench()
        const target = file("target")
        symlinkSync(target, join(folder, "link"))
        const details = yield* refusal({ knownHosts: [], ownKnownHosts: join(folder, "link"), acceptNew: true })
        assert.include(details, "cannot be written")
        assert.strictEqual(readFileSync(target, "utf8"), "")
        const error = yield* Effect.flip(Transports.make((yield* Sshd.Sshd).target(), { acceptNew: true }))
        assert.deepInclude(error, { _tag: "InvalidOption", option: "acceptNew" })
      })
    )

    it.scoped("SL-90: a file that cannot be read refuses every host, a missing file does not", () =>
      Effect.gen(function* () {
        const { connect, file, folder, host, key, printed, refusal } = yield* makeBench()
        const known = file("known", `${host} ${key}`)
        yield* connect({ knownHosts: [join(folder, "missing"), known] })
        mkdirSync(join(folder, "folder"))
        symlinkSync("loop", join(folder, "loop"))
        for (const name of ["folder", "loop"]) {
          const unreadable = join(folder, name)
          assert.include(yield* refusal({ knownHosts: [known, unreadable] }), `${unreadable} cannot be read`)
          assert.include(yield* refusal({ knownHosts: [known], ownKnownHosts: unreadable }), "cannot be read")
          const fingerprint = printed("ed25519")
          assert.include(yield* refusal({ knownHosts: [unreadable] }, { fingerprint }), "cannot be read")
        }
      })
    )

    it.scoped("SL-91: the host is asked for the key of a type that is known", () =>
      Effect.gen(function* () {
        const { connect, file, host, refusal, server } = yield* makeBench()
        yield* connect({ knownHosts: [file("ecdsa", `${host} ${server.hostKey("ecdsa")}`)] })
        // Of a type that is known, the server has no key at all.
        const ecdsa521 = join(server.folder, "ecdsa521")
        execFileSync("/usr/bin/ssh-keygen", ["-q", "-t", "ecdsa", "-b", "521", "-N", "", "-f", ecdsa521])
        const line = `${host} ${readFileSync(`${ecdsa521}.pub`, "utf8").trim()}`
        assert.include(yield* refusal({ knownHosts: [file("other", line)] }), "another key is known")
      })
    )
  })

  it.scoped("SL-91: the connection lasts when keys are exchanged again", () =>
    Effect.gen(function* () {
      const { settings, target } = yield* Sshd.make(["RekeyLimit 1M"])
      const transport = yield* Transports.make(target(), settings)
      const { stdout } = yield* runToEnd(transport, "head -c 5000000 /dev/zero")
      assert.strictEqual(stdout.length, 5_000_000)
    })
  )
})
