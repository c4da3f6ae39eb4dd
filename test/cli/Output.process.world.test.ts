/** Output that cannot be written: a full device, a file that may not grow, a pipe whose reader left half way. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { place, type Place } from "./support/Process.ts"

beforeAll(() => void build())

/** Runs `"$@"`, the command with its words, as the shell script says. */
const shell = (here: Place, script: string, words: ReadonlyArray<string>, bin = build().bin) => {
  const { status, stderr, stdout } = spawnSync("bash", ["-c", script, "bash", process.execPath, bin, ...words], {
    cwd: here.cwd,
    env: {
      PATH: process.env["PATH"],
      HOME: here.root,
      DAYBOOK_DB: here.database,
      DAYBOOK_ROOT: join(here.root, "ctx")
    },
    encoding: "utf8"
  })
  return { code: status, stderr, stdout }
}

const full = '"$@" >/dev/full'

describe("output", () => {
  it.scopedLive("CL-44: every verb whose output meets a full device says so and exits 74", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--session", "fix", "hello"])
      for (const line of [
        "events",
        "events --json",
        "messages",
        "messages --json",
        "sessions",
        "sessions --json",
        "show",
        "show --json",
        "context --at 100",
        "context --at 100 --json",
        "budget",
        "--help",
        "help events",
        "--version",
        "--completions bash"
      ]) {
        const { code, stderr } = shell(here, full, line.split(" "))
        assert.match(stderr, /^daybook: [^\n]+ cannot be written: no space left on the device \(ENOSPC\)\n$/, line)
        assert.strictEqual(code, 74, line)
      }
    })
  )

  it.scopedLive("CL-44: a prompt whose answer meets a full device is interrupted, and says where the answer is", () =>
    Effect.gen(function* () {
      const here = yield* place
      for (const words of [
        ["prompt", "hello"],
        ["prompt", "--json", "hello"]
      ]) {
        const { code, stderr } = shell(here, full, words)
        assert.match(
          stderr,
          /\ndaybook: stdout cannot be written: [^\n]*ENOSPC[^\n]*; [^\n]*daybook show ses_\S+ [^\n]*\n$/
        )
        assert.strictEqual(code, 74)
      }
      const noRun = shell(here, full, ["prompt", "--no-run", "hello"])
      assert.strictEqual(noRun.code, 74)
    })
  )

  it.scopedLive("CL-44: a file that takes only the beginning of the output is told of, whole writes are not", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--session", "fix", "--no-run"], { input: "word ".repeat(60_000) })
      yield* here.run(["rename", "fix", "better"])
      // The signal would end the process before it could say anything.
      const limited = `trap '' XFSZ; ulimit -f 128; "$@" >out`
      const cut = shell(here, limited, ["events", "--json"])
      assert.match(cut.stderr, /^daybook: stdout cannot be written: [^\n]+ \(EFBIG\)\n$/)
      assert.strictEqual(cut.code, 74)
      const whole = shell(here, `"$@" >out`, ["events", "--json"])
      assert.deepStrictEqual([whole.code, whole.stderr], [0, ""])
      const written = readFileSync(join(here.cwd, "out"), "utf8")
      assert.strictEqual(written, (yield* here.run(["events", "--json"])).stdout)
    })
  )

  it.scopedLive("CL-44: a note that stderr does not take makes the exit code 74, and not the work fail", () =>
    Effect.gen(function* () {
      const here = yield* place
      const prompt = shell(here, `"$@" 2>/dev/full`, ["prompt", "hello"])
      assert.strictEqual(prompt.code, 74)
      assert.include(prompt.stdout, "hello")
      const quiet = shell(here, `"$@" 2>/dev/full`, ["events"])
      assert.strictEqual(quiet.code, 0)
      assert.match(quiet.stdout, /activity\.settled +act_\S+ completed\n$/)
      assert.strictEqual(shell(here, `"$@" 2>/dev/full`, ["nosuch"]).code, 2)
    })
  )

  it.scopedLive("CL-34: a reader that leaves in the middle of a write is no failure", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--session", "fix", "--no-run"], { input: "word ".repeat(200_000) })
      for (const words of [["events", "--json"], ["events"], ["--help"]]) {
        const { code, stderr, stdout } = shell(here, `{ "$@"; echo "code $?" >&2; } | head -c 100`, words)
        assert.strictEqual(Buffer.byteLength(stdout), 100)
        assert.deepStrictEqual([code, stderr], [0, "code 0\n"])
      }
    })
  )

  it.scopedLive("CL-103: ctx says that its output cannot be written, and exits 69", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { ctx } = build()
      yield* here.run(["prompt", "--session", "fix", "hello"])
      for (const words of [["--help"], ["--version"]]) {
        const { code, stderr } = shell(here, full, words, ctx)
        assert.deepStrictEqual(
          [code, stderr],
          [69, "ctx: stdout cannot be written: no space left on the device (ENOSPC)\n"]
        )
      }
    })
  )
})
