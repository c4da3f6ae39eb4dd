/** The verbs of live shells over SSH, with a real server: what becomes of a password. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { lacks } from "../support/Parts.ts"
import * as Sshd from "../shell/support/Sshd.ts"
import { build } from "./support/Bundle.ts"
import { type ShellPlace, shellPlace } from "./support/ShellHost.ts"

beforeAll(() => void build())

/** A place whose configuration trusts the server. */
const trusting = Effect.gen(function* () {
  const { folder, password, port, user } = yield* Sshd.Sshd
  const here = yield* shellPlace()
  const config = join(here.root, "config.yaml")
  writeFileSync(config, `shell: {ssh: {known_hosts: [${folder}/known_hosts], keys: ${folder}}}\n`)
  const env = { DAYBOOK_CONFIG: config }
  return { here, env, secret: Redacted.value(password), address: `${user}@127.0.0.1:${port}`, user }
})

/** Every byte of every file in the place. */
const bytesOf = ({ root }: ShellPlace) =>
  Buffer.concat(
    readdirSync(root, { recursive: true, withFileTypes: true, encoding: "utf8" })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name)))
  )

/** The arguments and environments of all processes. */
const argumentsOfAll = Effect.sync(() =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return ["cmdline", "environ"].map((file) => readFileSync(`/proc/${pid}/${file}`, "latin1")).join("\0")
      } catch {
        // It has ended in between.
        return ""
      }
    })
    .join("\n")
)

layer(Sshd.layer, { excludeTestServices: true })("shells over SSH", (it) => {
  it.scoped.skipIf(lacks("sshd"))(
    "SL-181: a password from stdin opens a shell, and is in no argument, log, database or file",
    () =>
      Effect.gen(function* () {
        const { address, env, here, secret, user } = yield* trusting
        const created = yield* here.shell(["create", "--ssh", address, "--password-stdin"], {
          env,
          input: `${secret}\n`
        })
        assert.deepStrictEqual([created.code, created.stderr], [0, ""])
        const id = created.stdout.trim()
        assert.strictEqual(id, `1_ssh_${address}`)
        assert.strictEqual((yield* here.shell(["exec", id, "whoami"])).stdout, `${user}\n`)
        assert.strictEqual((yield* here.shell(["exec", id, `echo '${secret}'`])).stdout, "<redacted>\n")
        const much = yield* here.shell(["exec", id, "head -c 6000000 /dev/zero | tr '\\0' a"])
        assert.strictEqual(much.stdout, "a".repeat(6_000_000))
        const wrong = `${secret}-wrong`
        const refused = yield* here.shell(["create", "--ssh", address, "--password-stdin"], { env, input: wrong })
        assert.deepStrictEqual([refused.code, refused.stdout], [1, ""])
        assert.notInclude(refused.stderr, secret)
        assert.notInclude(yield* argumentsOfAll, secret)
        yield* here.shell(["destroy", id])
        assert.isFalse(bytesOf(here).includes(secret))
      })
  )

  it.scoped.skipIf(lacks("sshd"))("SL-181: at the terminal a password is asked for, and no key of it is shown", () =>
    Effect.gen(function* () {
      const { address, env, here, secret } = yield* trusting
      const terminal = { columns: 100, rows: 24 }
      const running = yield* here.startShell(["create", "--ssh", address], { env, terminal })
      yield* running.until("stdout", (text) => text.endsWith(`password of ${address}: `))
      // A typing error, taken back.
      yield* running.type(`${secret}x\u007f\r`)
      const { code, stdout } = yield* running.ended
      assert.strictEqual(code, 0)
      assert.match(stdout, /: \r?\n1_ssh_\S+\r?\n$/)
      assert.notInclude(stdout, secret)
    })
  )

  it.scoped.skipIf(lacks("sshd"))("SL-181: with --key and --password, the passphrase of the key is asked for", () =>
    Effect.gen(function* () {
      const { address, env, here } = yield* trusting
      const terminal = { columns: 100, rows: 24 }
      const running = yield* here.startShell(["create", "--ssh", address, "--key", "locked", "--password"], {
        env,
        terminal
      })
      yield* running.until("stdout", (text) => text.endsWith("passphrase of the key: "))
      yield* running.type("open sesame\r")
      const { code } = yield* running.ended
      assert.strictEqual(code, 0)
      const plain = yield* here.shell(["create", "--ssh", address, "--key", "user"], { env })
      assert.deepStrictEqual([plain.code, plain.stdout], [0, `2_ssh_${address}\n`])
      const stranger = yield* here.shell(["create", "--ssh", address, "--key", "stranger"], { env })
      assert.deepStrictEqual([stranger.code, stranger.stdout], [1, ""])
    })
  )
})
