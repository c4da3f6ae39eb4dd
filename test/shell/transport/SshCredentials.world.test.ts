/** How an SSH transport logs in, with a real OpenSSH server and a real agent. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect, Exit, Redacted } from "effect"
import ssh2 from "ssh2"
import type { SshTarget } from "../../../packages/shell/src/domain/Target.ts"
import * as Transports from "../../../packages/shell/src/transport/Transports.ts"
import { temporaryFolder } from "../../support/Database.ts"
import { daemon } from "../support/Daemon.ts"
import { lacks } from "../../support/Parts.ts"
import { runToEnd } from "../support/Programs.ts"
import * as Sshd from "../support/Sshd.ts"

type Fields = Partial<Omit<SshTarget, "transport">>

/** Logs in with these credentials only, and returns the user's name on the server. */
const logInAt = ({ settings, target }: Sshd.SshServer, fields: Fields) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { keyPath: _, ...keyless } = target()
      const transport = yield* Transports.make({ ...keyless, ...fields }, settings)
      return (yield* runToEnd(transport, "id -un")).stdout.toString().trim()
    })
  )

const logIn = (fields: Fields) => Effect.flatMap(Sshd.Sshd, (server) => logInAt(server, fields))

/** The environment of this process during the scope. */
const environment = (name: string, value: string | undefined) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = process.env[name]
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
      return before
    }),
    (before) =>
      Effect.sync(() => {
        if (before === undefined) delete process.env[name]
        else process.env[name] = before
      })
  )

/** An agent with these keys, at `SSH_AUTH_SOCK`. */
const agentWith = Effect.fnUntraced(function* (...keys: ReadonlyArray<string>) {
  const socket = join(yield* temporaryFolder, "agent")
  yield* daemon("/usr/bin/ssh-agent", { args: ["-D", "-a", socket], ready: /SSH_AUTH_SOCK/ })
  yield* environment("SSH_AUTH_SOCK", socket)
  for (const key of keys) execFileSync("/usr/bin/ssh-add", ["-q", key], { stdio: "ignore" })
})

describe.skipIf(lacks("sshd"))("over SSH", () => {
  it.layer(Sshd.layer)("credentials of SSH targets", (it) => {
    it.effect("SL-92: a key, an encrypted key, a password and an agent log in", () =>
      Effect.gen(function* () {
        const { folder, password, user } = yield* Sshd.Sshd
        const passphrase = Redacted.make("open sesame")
        assert.strictEqual(yield* logIn({ keyPath: "user" }), user)
        assert.strictEqual(yield* logIn({ keyPath: join(folder, "user") }), user)
        assert.strictEqual(yield* logIn({ keyPath: "locked", passphrase }), user)
        assert.strictEqual(yield* logIn({ password }), user)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* agentWith(join(folder, "stranger"), join(folder, "user"))
            assert.strictEqual(yield* logIn({ agent: true }), user)
          })
        )
      })
    )

    it.scoped("SL-92: credentials that the server refuses are followed by the next", () =>
      Effect.gen(function* () {
        const { folder, password, user } = yield* Sshd.Sshd
        assert.strictEqual(yield* logIn({ keyPath: "stranger", password }), user)
        yield* agentWith(join(folder, "stranger"))
        assert.strictEqual(yield* logIn({ keyPath: "stranger", agent: true, password }), user)
        yield* environment("SSH_AUTH_SOCK", join(folder, "no-agent"))
        assert.strictEqual(yield* logIn({ agent: true, password }), user)
      })
    )

    it.scoped("SL-92: refused credentials are an error that contains none of them", () =>
      Effect.gen(function* () {
        const { user } = yield* Sshd.Sshd
        const password = Redacted.make("hunter2-hunter2")
        const passphrase = Redacted.make("wrong-horse")
        const wrong = yield* Effect.flip(logIn({ password }))
        assert.deepInclude(wrong, { _tag: "TransportFailed", reason: "credentials" })
        assert.include(wrong.message, user)
        const stranger = yield* Effect.flip(logIn({ keyPath: "stranger", password }))
        assert.include(stranger.message, "refuses the key and the password")
        const noAgent = yield* Effect.zipRight(
          environment("SSH_AUTH_SOCK", undefined),
          Effect.flip(logIn({ agent: true }))
        )
        assert.deepInclude(noAgent, { _tag: "InvalidOption", option: "agent" })
        const locked = yield* Effect.flip(logIn({ keyPath: "locked" }))
        assert.deepInclude(locked, { _tag: "InvalidOption", option: "passphrase" })
        assert.include(locked.message, "encrypted")
        const opened = yield* Effect.flip(logIn({ keyPath: "locked", passphrase }))
        assert.include(opened.message, "does not decrypt")
        for (const error of [wrong, stranger, locked, opened]) {
          assert.notMatch(`${error.message} ${JSON.stringify(error)} ${error.stack ?? ""}`, /hunter2|horse/)
        }
      })
    )

    it.scoped("SL-85: a path that is not that of a key within the folder gives one error, whatever is there", () =>
      Effect.gen(function* () {
        const server = yield* Sshd.Sshd
        const outside = yield* temporaryFolder
        const folder = join(server.folder, "keys")
        mkdirSync(join(folder, "folder"), { recursive: true })
        execFileSync("/bin/cp", [join(server.folder, "user"), join(outside, "user")])
        execFileSync("/bin/cp", [join(server.folder, "user"), join(folder, "inside")])
        execFileSync("/bin/cp", [join(server.folder, "user.pub"), join(folder, "public")])
        execFileSync("/usr/bin/mkfifo", [join(folder, "pipe")])
        symlinkSync(join(outside, "user"), join(folder, "link-out"))
        symlinkSync(outside, join(folder, "folder-out"))
        symlinkSync("inside", join(folder, "link-in"))
        writeFileSync(join(folder, "text"), "no key")
        writeFileSync(join(folder, "large"), Buffer.alloc(100_000))
        const within = { ...server, settings: { ...server.settings, keyFolder: folder } }
        assert.strictEqual(yield* logInAt(within, { keyPath: "inside" }), server.user)
        assert.strictEqual(yield* logInAt(within, { keyPath: "link-in" }), server.user)
        const links = ["link-out", "folder-out/user"]
        const others = ["missing", ".", "folder", "public", "pipe", "text", "large", "", "inside\0"]
        const elsewhere = [
          "../user",
          join(outside, "user"),
          join(outside, "missing"),
          "/etc/passwd",
          `${folder}-missing/user`
        ]
        const paths = [...links, ...others, ...elsewhere]
        for (const keyPath of paths) {
          const error = yield* Effect.flip(logInAt(within, { keyPath }))
          assert.deepInclude(error, { _tag: "InvalidOption", option: "keyPath" }, keyPath)
          assert.include(error.message, "no usable private key", keyPath)
        }
        const { keyFolder: _, ...folderless } = server.settings
        const error = yield* Effect.flip(logInAt({ ...server, settings: folderless }, { keyPath: "user" }))
        assert.include(error.message, "no folder of keys")
      })
    )
  })

  it.scoped("SL-92: a password answers a keyboard-interactive question of PAM", () =>
    Effect.gen(function* () {
      const server = yield* Sshd.make(["UsePAM yes", "PasswordAuthentication no", "KbdInteractiveAuthentication yes"])
      assert.strictEqual(yield* logInAt(server, { password: server.password }), server.user)
    })
  )

  it.scoped("SL-92: a host that is not trusted gets no credentials", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const closed = yield* Deferred.make<void>()
      const key = ssh2.utils.generateKeyPairSync("ed25519").private
      const { port } = yield* Effect.acquireRelease(
        Effect.async<{ readonly listening: ssh2.Server; readonly port: number }>((resume) => {
          const listening = new ssh2.Server({ hostKeys: [key] }, (client) => {
            client.on("authentication", (context) => {
              asked.push(context.method)
              context.reject()
            })
            client.on("error", () => undefined)
            client.on("close", () => Deferred.unsafeDone(closed, Exit.void))
          })
          listening.listen(0, "127.0.0.1", () => {
            const address = listening.address()
            const port = address !== null && typeof address === "object" ? address.port : 0
            resume(Effect.succeed({ listening, port }))
          })
        }),
        ({ listening }) => Effect.sync(() => listening.close())
      )
      const password = Redacted.make("secret")
      const target = { transport: "ssh", host: "127.0.0.1", port, user: "nobody", password } as const
      const error = yield* Effect.flip(Transports.make(target, { knownHosts: [] }))
      assert.deepInclude(error, { _tag: "TransportFailed", reason: "host key" })
      yield* Deferred.await(closed)
      assert.deepStrictEqual(asked, [])
    })
  )
})
