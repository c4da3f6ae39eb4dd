/**
 * Keys in the system's keychain. Method: a stand-in for `secret-tool` in `PATH` that checks the protocol and notes its words, and a
 * model server on the loopback that wants the key.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { toolOf } from "../../packages/cli/src/config/Keychain.ts"
import { build } from "./support/Bundle.ts"
import { place } from "./support/Process.ts"

beforeAll(() => void build())

const key = "sk-test'1#=2"

const standIn = `#!/bin/sh
KEYCHAIN=$(dirname "$0")/../keychain
echo "$@" >> "$KEYCHAIN/words"
case "$1" in
  store) [ "$2|$3 $4 $5" = "--label=Daybook: $6|service daybook variable" ] || exit 9; cat > "$KEYCHAIN/$6" ;;
  lookup) [ "$2 $3 $4" = "service daybook variable" ] || exit 9
    [ -f "$KEYCHAIN/locked" ] && { echo "the keychain is locked" >&2; exit 1; }
    [ -f "$KEYCHAIN/$5" ] || exit 1; cat "$KEYCHAIN/$5" ;;
  *) exit 9 ;;
esac
`

/** A server that answers those who have the key. */
const server = Effect.acquireRelease(
  Effect.async<{ readonly url: string; readonly close: () => void }>((resume) => {
    const listening = createServer(({ headers }, response) => {
      if (headers.authorization !== `Bearer ${key}`) return void response.writeHead(401).end("{}")
      response.setHeader("content-type", "application/json")
      response.end(JSON.stringify({ data: [{ id: "small" }] }))
    }).listen(0, "127.0.0.1", () => {
      const address = listening.address()
      const port = typeof address === "object" ? address?.port : undefined
      resume(Effect.succeed({ url: `http://127.0.0.1:${port}/v1`, close: () => void listening.close().unref() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

const withKeychain = Effect.gen(function* () {
  const here = yield* place
  const { url } = yield* server
  const [bin, keychain] = [join(here.root, "tools"), join(here.root, "keychain")]
  mkdirSync(bin)
  mkdirSync(keychain)
  writeFileSync(join(bin, "secret-tool"), standIn, { mode: 0o755 })
  const env = {
    PATH: `${bin}:${process.env["PATH"] ?? ""}`,
    XDG_DATA_HOME: join(here.root, "data"),
    SHELL: "/bin/sh"
  }
  const words = () => (existsSync(join(keychain, "words")) ? readFileSync(join(keychain, "words"), "utf8") : "")
  const kept = () => readFileSync(join(here.root, "data", "daybook", "keys.env"), "utf8")
  const save = here.run(["setup", "--provider", url, "--keychain"], { env, input: key })
  return { here, bin, keychain, env, url, words, kept, save }
})

describe.skipIf(process.platform !== "linux")("the keychain", () => {
  it.scopedLive("CL-836: a key is in no file and in no word of a program, and a later command uses it", () =>
    Effect.gen(function* () {
      const { env, here, kept, save, words } = yield* withKeychain
      const { code, stderr } = yield* save
      assert.deepStrictEqual([code, stderr.includes("kept in the system's keychain")], [0, true])
      assert.match(kept(), /^DAYBOOK_KEYCHAIN="DAYBOOK_API_KEY"$/m)
      assert.notInclude(kept(), "sk-test")
      const listed = yield* here.run(["models"], { env })
      assert.include(listed.stdout, "openai-compatible/small")
      assert.notInclude(words(), "sk-test")
    })
  )

  it.scopedLive("CL-836: a verb that reads, and one whose key the environment has, do not ask the keychain", () =>
    Effect.gen(function* () {
      const { env, here, save, words } = yield* withKeychain
      yield* save
      const before = words()
      yield* here.run(["sessions"], { env })
      const { stdout } = yield* here.run(["models"], { env: { ...env, DAYBOOK_API_KEY: key } })
      assert.include(stdout, "openai-compatible/small")
      assert.strictEqual(words(), before)
    })
  )

  it.scopedLive("CL-837: a key that the keychain does not give is an error with its reason, and no model answers", () =>
    Effect.gen(function* () {
      const { bin, env, here, keychain, save } = yield* withKeychain
      yield* save
      writeFileSync(join(keychain, "locked"), "")
      const locked = yield* here.run(["prompt", "Hi"], { env })
      assert.strictEqual(locked.code, 2)
      assert.include(locked.stderr, "did not give DAYBOOK_API_KEY (the keychain is locked): set the variable, or keep")
      rmSync(join(bin, "secret-tool"))
      const gone = yield* here.runAlone(["prompt", "Hi"], { env: { ...env, PATH: bin } })
      assert.include(gone.stderr, "did not give DAYBOOK_API_KEY (secret-tool is not installed)")
    })
  )

  it.scopedLive("CL-835: at a terminal setup asks for the keychain; n keeps the key in the file alone", () =>
    Effect.gen(function* () {
      const { env, here, kept, save, url } = yield* withKeychain
      yield* save
      const running = yield* here.startAlone(["setup"], { env, terminal: { columns: 200, rows: 60 } })
      const answers = [
        ["Enter skips: ", url],
        ["Enter for none: ", key],
        ["(secret-tool)? [Y/n] ", "n"],
        ["Enter for 1: ", "1"]
      ] as const
      for (const [question, answer] of answers) {
        yield* running.until("stdout", (text) => text.includes(question))
        yield* running.type(`${answer}\r`)
      }
      assert.strictEqual((yield* running.ended).code, 0)
      assert.include(kept(), `DAYBOOK_API_KEY="${key}"`)
      assert.notInclude(kept(), "DAYBOOK_KEYCHAIN")
    })
  )

  it("CL-836: on macOS the key is in the input of security, in hexadecimal", () => {
    const { words, input } = toolOf("darwin").store("MISTRAL_API_KEY", "sk-1")
    assert.deepStrictEqual(words, ["-i"])
    assert.strictEqual(input, "add-generic-password -U -s daybook -a MISTRAL_API_KEY -X 736b2d31\n")
  })
})
