/** The verbs that list, show and steer sessions, as processes on one database. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

const titles = (stdout: string) => jsonLines(stdout).map((session) => session["title"])

describe("verbs", () => {
  it.scopedLive("CL-561: the folder that selects sessions and prompts need not exist any more", () =>
    Effect.gen(function* () {
      const here = yield* place
      const other = join(here.root, "other")
      mkdirSync(other)
      yield* here.run(["prompt", "--session", "two", "--no-run", "about pears"], { cwd: other })
      rmSync(other, { recursive: true })
      for (const verb of ["sessions", "history"]) {
        const { code, stderr, stdout } = yield* here.run([verb, "--json", "--cwd", other])
        assert.strictEqual(code, 0, stderr)
        assert.lengthOf(jsonLines(stdout), 1)
      }
    })
  )

  it.scopedLive("CL-14: sessions come in pages, the last used first, and can be narrowed", () =>
    Effect.gen(function* () {
      const here = yield* place
      const other = join(here.root, "other")
      mkdirSync(other)
      yield* here.run(["prompt", "--session", "one", "--no-run", "about apples"])
      yield* here.run(["prompt", "--session", "two", "--no-run", "about pears"], { cwd: other })
      yield* here.run(["prompt", "--session", "three", "--no-run", "more apples"])
      yield* here.run(["prompt", "--session", "one", "--no-run", "again"])
      const all = yield* here.run(["sessions", "--json"])
      assert.deepStrictEqual(titles(all.stdout), ["one", "three", "two"])
      const first = yield* here.run(["sessions", "--json", "--limit", "2"])
      const cursor = /^more: --cursor (\S+)$/m.exec(first.stderr)?.[1] ?? ""
      const second = yield* here.run(["sessions", "--json", "--limit", "2", "--cursor", cursor])
      assert.strictEqual(first.stdout + second.stdout, all.stdout)
      assert.strictEqual(second.stderr, "")
      const inOther = yield* here.run(["sessions", "--json", "--cwd", other])
      assert.deepStrictEqual(titles(inOther.stdout), ["two"])
      const found = yield* here.run(["sessions", "--json", "--search", "APPLES"])
      assert.deepStrictEqual(titles(found.stdout), ["one", "three"])
    })
  )

  it.scopedLive("CL-11: processes that prompt a session of a new name at once prompt the same one", () =>
    Effect.gen(function* () {
      const here = yield* place
      const words = (number: number) => ["prompt", "--session", "together", "--no-run", `prompt ${number}`]
      const ended = yield* Effect.forEach(Array.from({ length: 6 }), (_, number) => here.run(words(number)), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        ended.map(({ code }) => code),
        ended.map(() => 0)
      )
      assert.deepStrictEqual(titles((yield* here.run(["sessions", "--json"])).stdout), ["together"])
      assert.match((yield* here.run(["show", "together"])).stderr, /6/)
    })
  )

  it.scopedLive("CL-94: doctor and sessions say where prompts wait for a run", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--session", "one", "--no-run", "later"])
      yield* here.run(["prompt", "--session", "two", "now"])
      const [done, waiting] = (yield* here.run(["sessions"])).stdout.split("\n")
      assert.match(waiting ?? "", /  waiting  .*  one  /)
      assert.match(done ?? "", /  completed  .*  two  /)
      const { stdout } = yield* here.run(["doctor"])
      assert.match(
        stdout,
        /^warning +sessions +with prompts that wait for a run: ses_\S+; daybook resume ID runs them$/m
      )
      yield* here.run(["resume", "one"])
      assert.notMatch((yield* here.run(["doctor"])).stdout, / sessions /)
    })
  )

  it.scopedLive("CL-173, CL-10: a reader without a reference takes the session used last in the folder", () =>
    Effect.gen(function* () {
      const here = yield* place
      const other = join(here.root, "other")
      mkdirSync(other)
      yield* here.run(["prompt", "--session", "here", "--no-run", "one"])
      yield* here.run(["prompt", "--session", "there", "--no-run", "two"], { cwd: other })
      const title = (stdout: string) => /^title +(.*)$/m.exec(stdout)?.[1]
      assert.strictEqual(title((yield* here.run(["show"])).stdout), "here")
      assert.strictEqual(title((yield* here.run(["show"], { cwd: other })).stdout), "there")
      assert.strictEqual(title((yield* here.run(["show"], { cwd: here.root })).stdout), "there")
    })
  )

  it.scopedLive("CL-15: messages come in pages, in their order", () =>
    Effect.gen(function* () {
      const here = yield* place
      writeFileSync(join(here.cwd, "notes.txt"), "some notes")
      yield* here.run(["prompt", "--session", "fix", "Read notes.txt"])
      const all = yield* here.run(["messages", "fix", "--json"])
      const kinds = jsonLines(all.stdout).map((message) => message["type"])
      assert.deepStrictEqual(kinds, ["user", "assistant", "assistant"])
      const first = yield* here.run(["messages", "fix", "--json", "--limit", "2"])
      const after = /^more: --after (\d+) \(3 in all\)$/m.exec(first.stderr)?.[1] ?? ""
      const rest = yield* here.run(["messages", "fix", "--json", "--after", after])
      assert.strictEqual(first.stdout + rest.stdout, all.stdout)
      const shown = (yield* here.run(["show", "fix"])).stdout
      assert.match(shown, /## user .*\n\nRead notes\.txt\n[^]*→ read \{"path":"notes\.txt"\}\n {2}\| some notes/)
    })
  )

  it.scopedLive("CL-17: resume runs what waits in the inbox, one activity after the other", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const queue = ["prompt", "--session", "fix", "--delivery", "queue", "--no-run"]
      yield* here.run([...queue, "One"], { env })
      yield* here.run([...queue, "Two"], { env })
      const run = yield* here.start(["resume", "fix"], { env })
      const first = yield* model.next
      yield* first.text("First.")
      yield* first.finish()
      const second = yield* model.next
      yield* second.text("Second.")
      yield* second.finish()
      const ended = yield* run.ended
      assert.deepStrictEqual([ended.code, ended.stdout], [0, "First.\n\nSecond.\n"])
    })
  )

  it.scopedLive("CL-17: what a killed process left is shown as interrupted, and resume goes on with it", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const killed = yield* here.start(["prompt", "--session", "fix", "One"], { env })
      const first = yield* model.next
      yield* first.text("Half")
      yield* killed.until("stdout", (text) => text === "Half")
      yield* killed.signal("SIGKILL")
      yield* killed.ended
      const run = yield* here.start(["resume", "fix"], { env })
      const second = yield* model.next
      assert.include(JSON.stringify(second.body.messages), "One")
      yield* second.text("Whole.")
      yield* second.finish()
      const ended = yield* run.ended
      assert.deepStrictEqual([ended.code, ended.stdout], [0, "Whole.\n"])
      const events = jsonLines((yield* here.run(["events", "fix", "--json"])).stdout)
      const outcomes = events.flatMap((event) =>
        event["type"] === "session.next.activity.settled" ? [JSON.stringify(event["data"])] : []
      )
      assert.match(outcomes[0] ?? "", /"outcome":"interrupted"/)
      assert.match(outcomes[1] ?? "", /"outcome":"completed"/)
      assert.strictEqual(outcomes.length, 2)
    })
  )

  it.scopedLive("CL-40: resume of a session that another process works on is a conflict", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "--session", "fix", "One"], { env })
      const turn = yield* model.next
      const busy = yield* here.run(["resume", "fix"], { env })
      assert.strictEqual(busy.code, 4)
      assert.match(busy.stderr, /^daybook: ses_\S+ is being worked on by [^\n]+\n$/)
      yield* turn.text("Done.")
      yield* turn.finish()
      assert.strictEqual((yield* run.ended).stdout, "Done.\n")
    })
  )

  it.scopedLive("CL-17: switch gives the next turn another model, and says what it cannot give", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--session", "fix", "--no-run", "One"])
      const env = { DAYBOOK_BASE_URL: "http://127.0.0.1:1/v1" }
      assert.strictEqual((yield* here.run(["switch", "fix", "--model", "openai-compatible/m"], { env })).code, 0)
      assert.match((yield* here.run(["show", "fix"])).stdout, /^model +openai-compatible\/m$/m)
      assert.strictEqual((yield* here.run(["switch", "fix"])).code, 2)
      assert.strictEqual((yield* here.run(["switch", "fix", "--model", "nowhere/m"])).code, 5)
      assert.strictEqual((yield* here.run(["switch", "fix", "--agent", "nobody"])).code, 3)
      assert.match((yield* here.run(["show", "fix"])).stdout, /^model +openai-compatible\/m$/m)
    })
  )

  it.scopedLive("CL-19: doctor finds a sound database sound, and says what is wrong with another", () =>
    Effect.gen(function* () {
      const here = yield* place
      const fresh = yield* here.run(["doctor"])
      assert.deepStrictEqual([fresh.code, fresh.stderr], [0, ""])
      assert.include(fresh.stdout, "does not exist yet")
      assert.match(fresh.stdout, /^ok +config +there is no .*config\.yaml/m)
      assert.match(fresh.stdout, /^warning +model +only the offline model answers.*daybook setup/m)
      yield* here.run(["prompt", "--session", "fix", "--no-run", "One"])
      const sound = yield* here.run(["doctor"])
      assert.deepStrictEqual([sound.code, sound.stderr], [0, ""])
      assert.match(sound.stdout, /^ok +database .*daybook\.sqlite is sound and writable$/m)
      yield* here.sql("UPDATE session SET title = 'another'")
      const unsound = yield* here.run(["doctor", "--json"])
      assert.strictEqual(unsound.code, 6)
      const errors = jsonLines(unsound.stdout).filter((check) => check["verdict"] === "error")
      assert.isNotEmpty(errors)
      const about = String(errors[0]?.["about"])
      assert.match(about, /^ses_/)
      assert.include(String(errors[0]?.["fix"]), "daybook doctor --rebuild")
      const mended = yield* here.run(["doctor", "--rebuild", about])
      assert.deepStrictEqual([mended.code, mended.stderr], [0, "rebuilt: 1 session from 2 events\n"])
      assert.strictEqual((yield* here.run(["doctor", "--rebuild", "../x"])).code, 2)
      assert.strictEqual((yield* here.run(["doctor", "--rebuild", "ses_nobody"])).code, 3)
    })
  )

  it.scopedLive(
    "CL-183, CL-19: what keeps a database or an environment from use is a line of doctor, and the rest is looked at",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const garbage = join(here.root, "garbage")
        writeFileSync(garbage, "no database".repeat(500))
        yield* here.run(["prompt", "Hi"])
        for (const [env, code, about, says] of [
          [{ DAYBOOK_DB: garbage }, 6, "database", /damaged or not an SQLite database/],
          [{ DAYBOOK_DB: here.cwd }, 6, "database", /it is a folder and cannot be used as a file/],
          [
            { DAYBOOK_DB: join(garbage, "under") },
            6,
            "database",
            /the folder of the database cannot be used \(ENOTDIR\)/
          ],
          [{ DAYBOOK_BASE_URL: "nonsense" }, 2, "model", /DAYBOOK_BASE_URL: it is not an http or https address/]
        ] as const) {
          const doctor = yield* here.run(["doctor", "--json"], { env })
          assert.strictEqual(doctor.code, code)
          const checks = jsonLines(doctor.stdout)
          const wrong = checks.filter(({ verdict }) => verdict === "error")
          assert.deepStrictEqual([wrong.length, wrong[0]?.["about"]], [1, about])
          assert.match(String(wrong[0]?.["says"]), says)
          for (const other of ["node", "database", "config", "context", "agents", "model"]) {
            assert.isTrue(
              checks.some((check) => check["about"] === other),
              other
            )
          }
          assert.match(doctor.stderr, /^daybook: [^\n]+\n$/)
        }
      })
  )

  it.scopedLive("CL-3: help, version and completions are printed without a database", () =>
    Effect.gen(function* () {
      const here = yield* place
      const help = (yield* here.run(["--help"])).stdout
      assert.strictEqual((yield* here.run([])).stdout, help)
      assert.strictEqual((yield* here.run(["help", "events"])).stdout, (yield* here.run(["events", "-h"])).stdout)
      assert.match((yield* here.run(["--version"])).stdout, /^\d+\.\d+\.\d+\n$/)
      assert.include((yield* here.run(["--completions", "bash"])).stdout, "daybook")
      const text = yield* here.run(["prompt", "--no-run", "--json", "--", "--help"])
      assert.deepInclude(jsonLines(text.stdout)[0]?.["prompt"], { text: "--help" })
    })
  )

  it.scopedLive("CL-3: the completion of bash offers verbs, then actions and options", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { stdout } = yield* here.run(["--completions", "bash"])
      const offered = (...words: ReadonlyArray<string>) => {
        const line = `COMP_WORDS=(daybook ${words.join(" ")}); COMP_CWORD=${words.length}; _daybook`
        return execFileSync("bash", ["-c", `${stdout}\n${line}; echo "\${COMPREPLY[@]}"`], { encoding: "utf8" }).trim()
      }
      assert.strictEqual(offered("pru"), "prune")
      assert.strictEqual(offered("shell", "at"), "attach")
      assert.strictEqual(offered("shell", "create", "--pass"), "--password --password-stdin")
      assert.strictEqual(offered("prompt", "--no"), "--no-run --no-reasoning")
      const unknown = yield* here.run(["--completions", "ksh"])
      assert.deepInclude(unknown, { code: 2, stderr: "daybook: --completions: expected bash, zsh, fish or sh\n" })
    })
  )
})
