/** What a person does wrong, or a disk: one sentence, a documented exit code, and nothing changed. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { build } from "./support/Bundle.ts"
import { jsonLines, place, type Ended } from "./support/Process.ts"

beforeAll(() => void build())

const refused = (ended: Ended, code: number, sentence: RegExp) => {
  assert.match(ended.stderr, sentence)
  assert.match(ended.stderr, /^daybook: [^\n]+\n$/)
  assert.strictEqual(ended.code, code)
  assert.strictEqual(ended.stdout, "")
}

describe("refusals", () => {
  it.scopedLive("CL-22: no reader makes a database that is not there", () =>
    Effect.gen(function* () {
      const here = yield* place
      for (const words of [["events"], ["sessions"], ["messages"], ["show"], ["resume"], ["interrupt", "x"]]) {
        refused(yield* here.run(words), 3, /there is no database at .*daybook\.sqlite yet/)
      }
      assert.isFalse(existsSync(dirname(here.database)))
    })
  )

  it.scopedLive("CL-20: an empty or relative HOME is not the current folder", () =>
    Effect.gen(function* () {
      const here = yield* place
      for (const HOME of ["", "home"]) {
        const { stdout } = yield* here.runAlone(["import", "--json"], { env: { HOME } })
        for (const { folder } of jsonLines(stdout)) assert.match(String(folder), /^\//)
      }
    })
  )

  it.scopedLive("CL-2: unknown commands, options and values are refused before anything is touched", () =>
    Effect.gen(function* () {
      const here = yield* place
      refused(yield* here.run(["promt", "hi"]), 2, /there is no command "promt"/)
      refused(yield* here.run(["prompt", "hi", "--sesion", "x"]), 2, /did you mean --session\?/)
      refused(yield* here.run(["prompt", "hi", "--delivery", "later"]), 2, /--delivery: expected steer or queue/)
      refused(yield* here.run(["prompt", "hi", "--id", "nope"]), 2, /--id: expected msg_ followed by/)
      refused(yield* here.run(["prompt", "hi", "--cwd", "/not/there"]), 2, /--cwd: \/not\/there cannot be entered/)
      refused(yield* here.run(["events", "--after", "soon"]), 2, /--after: expected a whole number/)
      refused(yield* here.run(["events", "one", "two"]), 2, /two/)
      refused(yield* here.run(["rename", "one"]), 2, /TITLE/)
      refused(
        yield* here.run(["files", "verfy"]),
        2,
        /expected export, verify, rebuild, got "verfy"; did you mean verify\?/
      )
      assert.isFalse(existsSync(here.database))
    })
  )

  it.scopedLive("CL-845: the beginning of a title is enough, but not to remove or prune a session", () =>
    Effect.gen(function* () {
      const here = yield* place
      const elsewhere = join(here.root, "elsewhere")
      mkdirSync(elsewhere)
      yield* here.run(["prompt", "--session", "Fix the parser", "--no-run", "one"])
      yield* here.run(["prompt", "--session", "fix the build", "--no-run", "two"], { cwd: elsewhere })
      const title = ({ stdout }: { readonly stdout: string }) => /^title +(.*)$/m.exec(stdout)?.[1]
      assert.strictEqual(title(yield* here.run(["show", "fix"])), "Fix the parser")
      assert.strictEqual(title(yield* here.run(["show", "FIX"], { cwd: elsewhere })), "fix the build")
      assert.strictEqual(title(yield* here.run(["show", "fix the b"], { cwd: here.root })), "fix the build")
      refused(
        yield* here.run(["show", "fix the"], { cwd: here.root }),
        2,
        /a title that begins with "fix the": ses_\S+, ses_/
      )
      refused(yield* here.run(["show", "the parser"]), 3, /there is no session called "the parser"/)
      refused(yield* here.run(["remove", "Fix", "--yes"]), 3, /there is no session called "Fix"/)
      refused(yield* here.run(["prune", "Fix", "--to", "1"]), 3, /there is no session called "Fix"/)
      yield* here.run(["prompt", "--session", "Fix", "--no-run", "three"])
      assert.strictEqual(title(yield* here.run(["show", "Fix"])), "Fix")
    })
  )

  it.scopedLive("CL-10: bad, missing and ambiguous session references are told apart", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "same"])
      yield* here.run(["prompt", "--no-run", "same"])
      refused(yield* here.run(["events", "ses_../x"]), 2, /is not a session id/)
      refused(yield* here.run(["events", "ses_missing"]), 3, /there is no session ses_missing/)
      refused(yield* here.run(["events", "nobody"]), 3, /there is no session called "nobody"/)
      refused(yield* here.run(["events", "same"]), 2, /"same": ses_\S+, ses_\S+; .*daybook rename ID TITLE/)
      refused(yield* here.run(["prompt", "--session", "ses_missing", "hi"]), 3, /there is no session ses_missing/)
      assert.strictEqual(jsonLines((yield* here.run(["sessions", "--json"])).stdout).length, 2)
    })
  )

  it.scopedLive("CL-40: an unknown model, provider or agent makes no session", () =>
    Effect.gen(function* () {
      const here = yield* place
      refused(yield* here.run(["prompt", "hi", "--model", "nowhere/x"]), 5, /provider "nowhere" is not available/)
      assert.isFalse(existsSync(here.database))
      refused(yield* here.run(["prompt", "hi", "--model", "plain"]), 2, /does not name a model/)
      refused(yield* here.run(["prompt", "hi", "--agent", "nobody"]), 3, /there is no agent "nobody"/)
      assert.isFalse(existsSync(here.database))
      yield* here.run(["prompt", "--session", "fix", "--no-run", "hi"])
      yield* here.run(["remove", "fix", "--yes"])
      refused(yield* here.run(["prompt", "hi", "--agent", "nobody"]), 3, /there is no agent "nobody"/)
      refused(yield* here.run(["prompt", "hi", "--cwd", "/not/there"]), 2, /--cwd/)
      const listed = yield* here.run(["sessions", "--json"])
      assert.deepStrictEqual([listed.code, listed.stdout], [0, ""])
    })
  )

  it.scopedLive("CL-43: a database that is damaged, newer or not ours is refused and left as it is", () =>
    Effect.gen(function* () {
      const here = yield* place
      mkdirSync(dirname(here.database))
      writeFileSync(here.database, "this is no database, however long the text of it may be ".repeat(100))
      const before = readFileSync(here.database)
      refused(yield* here.run(["sessions"]), 6, /damaged or not an SQLite database/)
      refused(yield* here.run(["prompt", "hi"]), 6, /damaged or not an SQLite database/)
      assert.deepStrictEqual(readFileSync(here.database), before)

      const other = { DAYBOOK_DB: `${here.root}/other.sqlite` }
      new Database(other.DAYBOOK_DB).exec("CREATE TABLE mine (x)").close()
      refused(yield* here.run(["sessions"], { env: other }), 6, /is not a Daybook database/)

      const newer = { DAYBOOK_DB: `${here.root}/newer.sqlite` }
      yield* here.run(["prompt", "--no-run", "hi"], { env: newer })
      const connection = new Database(newer.DAYBOOK_DB)
      connection.exec("INSERT INTO migration (migration_id, name) VALUES (9999, 'later')")
      connection.close()
      refused(yield* here.run(["sessions"], { env: newer }), 6, /use a newer Daybook/)
    })
  )

  it.scopedLive("CL-43: a place that cannot be used is told as such", () =>
    Effect.gen(function* () {
      const here = yield* place
      const env = { DAYBOOK_DB: "/proc/daybook/daybook.sqlite" }
      refused(yield* here.run(["prompt", "hi"], { env }), 6, /\/proc\/daybook\/daybook\.sqlite: the folder/)
      const folder = { DAYBOOK_DB: here.root }
      refused(yield* here.run(["prompt", "hi"], { env: folder }), 6, /cannot|could not|unable/)
    })
  )

  it.scopedLive("CL-43: a root below a folder that takes no folders is refused at once", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "hi"])
      // With a key nothing is said of the offline model.
      const env = { ANTHROPIC_API_KEY: "x".repeat(20) }
      for (const root of ["/proc/daybook", "/proc/daybook/deep/er"]) {
        refused(
          yield* here.run(["serve", "--agent", "build", "--root", root, "--log-level", "warning"], { env }),
          6,
          /\/proc\/daybook.*ENOENT/
        )
        refused(yield* here.run(["files", "export", "--root", root]), 6, /\/proc\/daybook.*ENOENT/)
      }
    })
  )

  it.scopedLive("MD-70, MD-36: a variable that cannot be used is named by the command", () =>
    Effect.gen(function* () {
      const here = yield* place
      for (const [name, value] of [
        ["DAYBOOK_BASE_URL", "nonsense"],
        ["ANTHROPIC_BASE_URL", "ftp://x"],
        ["DAYBOOK_MODEL_RETRIES", "many"],
        ["DAYBOOK_MODEL_TIMEOUT", "soon"]
      ] as const) {
        refused(yield* here.run(["prompt", "hi"], { env: { [name]: value } }), 2, new RegExp(`^daybook: .*${name}`))
      }
    })
  )

  it.scopedLive("CL-18: remove asks; without a terminal it wants --yes, and then the session is gone", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--session", "fix", "--no-run", "hi"])
      refused(yield* here.run(["remove", "fix"]), 2, /--yes/)
      assert.strictEqual((yield* here.run(["remove", "fix", "--yes"])).code, 0)
      refused(yield* here.run(["show", "fix"]), 3, /there is no session called "fix"/)
      refused(yield* here.run(["show"]), 3, /there are no sessions yet/)
    })
  )

  it.scopedLive("CL-41: where an error came from is shown only when it is asked for", () =>
    Effect.gen(function* () {
      const here = yield* place
      const ended = yield* here.run(["prompt", "hi", "--delivery", "x"], { env: { DAYBOOK_DEBUG: "1" } })
      assert.match(ended.stderr, /^daybook: --delivery/m)
      assert.isAbove(ended.stderr.split("\n").length, 2)
    })
  )
})
