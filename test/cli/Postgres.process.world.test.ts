/** The command on a database of PostgreSQL: real processes, and a folder for each of two machines. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Schema } from "effect"
import { describe } from "vitest"
import { lacks } from "../support/Parts.ts"
import { postgresPrograms } from "../support/PostgresServer.ts"
import { freshSchema, postgres, query } from "../support/Postgres.ts"
import * as LossyProxy from "../postgres/support/Proxy.ts"
import { build } from "./support/Bundle.ts"
import { type Ended, jsonLines, type Place, place } from "./support/Process.ts"

beforeAll(() => void build())

const password = "not-to-be-seen"

/** An address with a password, which the server does not ask for, and a schema of its own. */
const address = Effect.gen(function* () {
  const [{ port }, { schema }] = [yield* postgres, yield* freshSchema]
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres?schema=${schema}`
})

const model = ["--model", "offline/scribe"]

const Made = Schema.Struct({ id: Schema.String })

const Ready = Schema.parseJson(Schema.Struct({ http: Schema.Struct({ url: Schema.String, inspector: Schema.String }) }))

/** Serves a place's sessions in a database, and returns how to ask the server. */
const served = Effect.fnUntraced(function* (here: Place, database: string) {
  const words = ["serve", "--json", "--show-token", "--http", "127.0.0.1:0"]
  const server = yield* here.start(words, { env: { DAYBOOK_DB: database } })
  const { http } = yield* Schema.decodeUnknown(Ready)(yield* server.until("stdout", (text) => text.includes("\n")))
  const headers = {
    authorization: `Bearer ${http.inspector.split("#token=")[1]}`,
    "content-type": "application/json"
  }
  return (path: string, body?: unknown) =>
    Effect.promise(() =>
      fetch(
        `${http.url}${path}`,
        body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) }
      )
    )
})

describe.skipIf(lacks("postgres"))("the command on PostgreSQL", () => {
  it.scopedLive("CL-800: verbs work on a database that DAYBOOK_DB or --database names, from every machine", () =>
    Effect.gen(function* () {
      const [one, other, database] = [yield* place, yield* place, yield* address]
      const env = { DAYBOOK_DB: database }
      const asked = yield* one.run(["prompt", "--session", "fix", ...model, "What is here?"], { env })
      assert.strictEqual(asked.code, 0, asked.stderr)
      assert.isFalse(existsSync(one.database))
      const listed = jsonLines((yield* other.run(["--database", database, "sessions", "--json"])).stdout)
      assert.deepStrictEqual(
        listed.map(({ title }) => title),
        ["fix"]
      )
      const id = String(listed[0]?.["id"])
      const events = yield* one.run(["events", id, "--json"], { env })
      assert.strictEqual(events.code, 0, events.stderr)
      assert.deepStrictEqual(yield* other.run(["events", id, "--json"], { env }), events)
      for (const words of [
        ["--plain", "--session", id],
        ["context", id],
        ["tree", id],
        ["rename", id, "mended"],
        ["budget", id],
        ["export", id, "--format", "pi", "--out", "fix.jsonl"],
        ["import", "fix.jsonl"],
        ["files", "export"],
        ["files", "verify"],
        ["shell", "list"]
      ]) {
        const { code, stderr } = yield* one.run(words, { env })
        assert.strictEqual(code, 0, `${words.join(" ")}: ${stderr}`)
      }
      const removed = yield* other.run(["remove", id, "--yes"], { env })
      assert.strictEqual(removed.code, 0, removed.stderr)
      assert.strictEqual((yield* one.run(["sessions"], { env })).stdout.includes(id), false)
    })
  )

  it.scopedLive("CL-801: what stays on the machine is in a folder of the database, and doctor shows no password", () =>
    Effect.gen(function* () {
      const [here, database] = [yield* place, yield* address]
      const env = { DAYBOOK_DB: database }
      yield* here.run(["prompt", "--no-run", "--session", "one", "hello"], { env })
      const looked = yield* here.run(["doctor"], { env })
      assert.match(
        looked.stdout,
        /^ok +database +postgres:\/\/127\.0\.0\.1:\d+\/postgres\?schema=\w+ is sound and writable$/m
      )
      assert.notInclude(`${looked.stdout}${looked.stderr}`, password)
    })
  )

  it.scopedLive(
    "CL-19, CL-175, CL-176: doctor finds a changed row and a changed event there, and rebuilds the row",
    () =>
      Effect.gen(function* () {
        const [here, database] = [yield* place, yield* address]
        const env = { DAYBOOK_DB: database }
        yield* here.run(["prompt", "--no-run", "--session", "one", "hello"], { env })
        const change = (statement: string) =>
          query(database.replace("?schema=", "?options=-csearch_path%3D"), statement)
        const doctor = (...words: ReadonlyArray<string>) => here.run(["doctor", ...words], { env })
        yield* change("UPDATE session SET title = 'two'")
        const unsound = yield* doctor()
        assert.strictEqual(unsound.code, 6, unsound.stderr)
        assert.match(unsound.stdout, /^error +ses_\w+ +session differs from its events: title; .*--rebuild/m)
        const rebuilt = yield* doctor("--rebuild", "all")
        assert.strictEqual(rebuilt.code, 0, rebuilt.stdout + rebuilt.stderr)
        assert.match(rebuilt.stderr, /^rebuilt: 1 session from \d+ events$/m)
        yield* change("UPDATE event SET created = created + 1 WHERE seq = 0")
        assert.match((yield* doctor()).stdout, /event 0 .* cannot be read: its checksum differs/)
      })
  )

  it.scopedLive(
    "CL-200, CL-202, CL-205: prune shows what would go, archives and removes it, and puts it back there",
    () =>
      Effect.gen(function* () {
        const [here, other, database] = [yield* place, yield* place, yield* address]
        const env = { DAYBOOK_DB: database }
        const asked = yield* here.run(["prompt", "--session", "fix", ...model, "What is here?"], { env })
        assert.strictEqual(asked.code, 0, asked.stderr)
        const events = (machine: Place) => machine.run(["events", "fix", "--json"], { env })
        const before = yield* events(here)
        const shown = yield* other.run(["prune", "--to", "100000"], { env })
        assert.match(shown.stdout, /^1 session, \d+ events, .* of events; removing them frees an estimated/m)
        assert.deepStrictEqual(yield* events(here), before)
        const done = yield* other.run(["prune", "--to", "100000", "--archive", "old", "--yes"], { env })
        assert.match(
          done.stdout,
          /^1 session, \d+ events pruned; PostgreSQL's vacuum keeps the space for later rows\narchived: /
        )
        assert.strictEqual((yield* events(here)).code, 3)
        const [archive = ""] = readdirSync(`${other.cwd}/old`)
        const back = yield* other.run(["prune", "--restore", `old/${archive}`], { env })
        assert.match(back.stdout, /^\d+ events of ses_\w+ are back\n$/)
        assert.deepStrictEqual(yield* events(here), before)
        assert.match((yield* here.run(["doctor"], { env })).stdout, /postgres\?schema=\w+ is sound and writable$/m)
      })
  )

  it.scopedLive("CL-803: a folder of this machine that cannot be used is named, and what names another one", () =>
    Effect.gen(function* () {
      const [here, database] = [yield* place, yield* address]
      const env = { DAYBOOK_DB: database, XDG_DATA_HOME: "/proc/daybook" }
      const refused = yield* here.run(["prompt", "--no-run", "hello"], { env })
      assert.strictEqual(refused.code, 6)
      assert.match(refused.stderr, /: the folder of this machine's files cannot be used \(ENOENT\); set XDG_DATA_HOME/)
    })
  )

  it.scopedLive("CL-194, CL-804: stats measures the tables there, as the server does, and changes nothing", () =>
    Effect.gen(function* () {
      const [here, database] = [yield* place, yield* address]
      const env = { DAYBOOK_DB: database }
      yield* here.run(["prompt", "--no-run", "--session", "one", "hello"], { env })
      yield* here.run(["prompt", "--no-run", "--session", "two", "hello"], { env })
      const text = yield* here.run(["stats"], { env })
      assert.match(text.stdout, /^tables [\d.]+ KB, free pages [^]*2 sessions, \d+ events[^]*tables, with indexes\n/)
      assert.match(text.stdout, /largest sessions\n +[\d.]+ k?B +\d+ {2}ses_\S+ (?:one|two)\n/)
      const [all] = jsonLines((yield* here.run(["stats", "--json"], { env })).stdout)
      const [one] = jsonLines((yield* here.run(["stats", "one", "--json"], { env })).stdout)
      assert.deepInclude(all, { sessions: 2, sampled: false })
      assert.hasAllKeys(all?.["snapshots"], ["bytes", "folders", "snapshots"])
      assert.hasAnyKeys(one?.["metrics"], ["turns"])
      assert.strictEqual(Number(all?.["events"]), 2 * Number(one?.["events"]))
      assert.strictEqual((yield* here.run(["stats", "no such"], { env })).code, 3)
      const ask = yield* served(here, database)
      const answered = yield* Effect.promise(async () =>
        JSON.parse(await (await Effect.runPromise(ask("/stats"))).text())
      )
      assert.deepInclude(answered, { sessions: 2, events: all?.["events"], bytes: all?.["bytes"] })
    })
  )

  it.scopedLive(
    "CL-201, CL-802: prune --max-size, and a server with a configured size, keep the tables in bounds",
    () =>
      Effect.gen(function* () {
        const [here, database] = [yield* place, yield* address]
        const env = { DAYBOOK_DB: database }
        yield* here.run(["prompt", "--session", "fix", ...model, "What is here?"], { env })
        const large = yield* here.run(["prune", "--max-size", "1GB", "--yes", "--json"], { env })
        assert.deepInclude(jsonLines(large.stdout)[0], { sessions: 0, events: 0 })
        const small = yield* here.run(["prune", "--max-size", "1KB", "--yes"], { env })
        assert.strictEqual(small.code, 1)
        assert.match(
          small.stdout,
          /^1 session, \d+ events pruned; PostgreSQL's vacuum keeps the space for later rows$/m
        )
        assert.match(small.stderr, /the database has .*, more than 1.0 KB: nothing else may go/)
        const folder = join(here.root, ".config", "daybook")
        mkdirSync(folder, { recursive: true })
        writeFileSync(join(folder, "config.yaml"), "retention: { max_size: 1GB }\n")
        assert.isTrue((yield* (yield* served(here, database))("/sessions")).ok)
      })
  )

  it.scopedLive("CL-809: a verb that reads makes no schema, and says which database and schema does not exist", () =>
    Effect.gen(function* () {
      const [here, database] = [yield* place, yield* address]
      const env = { DAYBOOK_DB: database }
      const { schema } = Object.fromEntries(new URL(database).searchParams)
      const schemas = query(
        database.replace(/\?.*/, ""),
        `SELECT 1 FROM pg_namespace WHERE nspname = '${schema}' AND EXISTS
          (SELECT 1 FROM pg_class WHERE relnamespace = pg_namespace.oid)`
      )
      const missing = new RegExp(
        `^daybook: postgres://127\\.0\\.0\\.1:\\d+/postgres: it has no schema ${schema} yet; daybook prompt creates it\n$`
      )
      for (const words of [
        ["sessions"],
        ["events", "fix"],
        ["show", "fix"],
        ["search", "heron"],
        ["rename", "fix", "mended"],
        ["stats"],
        ["prune", "--keep", "1d"],
        ["files", "export"],
        ["nodes"],
        ["doctor", "--rebuild", "all"],
        ["remove", "fix", "--yes"]
      ]) {
        const { code, stderr } = yield* here.run(words, { env })
        assert.match(stderr, missing, words.join(" "))
        assert.strictEqual(code, 3)
        assert.deepStrictEqual(yield* schemas, [], words.join(" "))
      }
      const looked = yield* here.run(["doctor"], { env })
      assert.match(
        looked.stdout,
        new RegExp(`^ok +database +\\S+\\?schema=${schema} does not exist yet; daybook prompt`, "m")
      )
      yield* query(database.replace(/\?.*/, ""), `CREATE SCHEMA ${schema}`)
      const empty = yield* here.run(["sessions"], { env })
      assert.match(
        empty.stderr,
        new RegExp(`: its schema ${schema} has no tables of Daybook yet; daybook prompt creates`)
      )
      assert.deepStrictEqual(yield* schemas, [])
      assert.strictEqual((yield* here.run(["--plain"], { env, input: "" })).code, 0)
      assert.strictEqual((yield* here.run(["prompt", "--no-run", "hello"], { env })).code, 0)
      assert.strictEqual((yield* here.run(["sessions"], { env })).code, 0)
    })
  )

  it.scopedLive("CL-255: each machine searches with an index of its own, and a removed session is found on none", () =>
    Effect.gen(function* () {
      const [one, other, database] = [yield* place, yield* place, yield* address]
      const env = { DAYBOOK_DB: database }
      for (const [name, text] of [
        ["one", "Why does the login page flicker?"],
        ["two", "Write a login test"]
      ] as const) {
        yield* one.run(["prompt", "--no-run", "--session", name, text], { env })
      }
      const titles = (machine: Place, ...words: ReadonlyArray<string>) =>
        Effect.map(machine.run(["search", "--json", ...words], { env }), ({ code, stderr, stdout }) => {
          assert.strictEqual(code, 0, stderr)
          return jsonLines(stdout)
            .map(({ title }) => String(title))
            .toSorted()
        })
      for (const machine of [one, other]) assert.deepStrictEqual(yield* titles(machine, "login"), ["one", "two"])
      assert.strictEqual((yield* other.run(["remove", "two", "--yes"], { env })).code, 0)
      for (const machine of [one, other]) {
        assert.deepStrictEqual(yield* titles(machine, "login"), ["one"])
        assert.match((yield* machine.run(["history"], { env })).stdout, /^\S+ \S+ +ses_\S+ +Why does [^\n]+\n$/)
        const rebuilt = yield* machine.run(["search", "--rebuild"], { env })
        assert.deepStrictEqual([rebuilt.code, rebuilt.stdout], [0, ""])
        const kept = join(dirname(machine.cwd), ".local", "share", "daybook", "postgres")
        const [index = ""] = readdirSync(kept, { recursive: true, encoding: "utf8" }).filter((name) =>
          name.endsWith("database.search")
        )
        assert.strictEqual(statSync(join(kept, index)).mode & 0o777, 0o600)
        const db = new Sqlite(join(kept, index))
        db.exec("DELETE FROM document")
        db.close()
        const { stdout } = yield* machine.run(["doctor"], { env })
        assert.match(stdout, /^warning +search +the search index misses 1 text/m)
      }
    })
  )

  it.scopedLive(
    "CL-802, PG-21: backup and restore are refused with the commands of PostgreSQL that do it, and these work",
    () =>
      Effect.gen(function* () {
        const [here, database] = [yield* place, yield* address]
        const env = { DAYBOOK_DB: database }
        yield* here.run(["prompt", "--session", "fix", ...model, "What is here?"], { env })
        const events = here.run(["events", "fix", "--json"], { env })
        const before = yield* events
        /** Runs the command that the refusal of a verb names. */
        const follow = Effect.fnUntraced(function* (verb: string) {
          const { code, stderr } = yield* here.run([verb, "copy.dump"], { env })
          assert.strictEqual(code, 2, stderr)
          assert.match(
            stderr,
            /^daybook: the database is postgres:\/\/127\.0\.0\.1:\d+\/postgres\?schema=\w+, and this /
          )
          assert.notInclude(stderr, password)
          const [, line = ""] = /(pg_(?:dump|restore) .*) (?:copies it|puts the copy)/.exec(stderr) ?? []
          const [name = "", ...words] = line.replace("USER", "postgres").split(" ")
          execFileSync(join(postgresPrograms() ?? "", name), words, { cwd: here.cwd })
          return stderr
        })
        const said = yield* follow("backup")
        for (const folder of [".config", ".local/share"]) assert.include(said, join(here.root, folder, "daybook"))
        assert.strictEqual((yield* here.run(["remove", "fix", "--yes"], { env })).code, 0)
        assert.match(yield* follow("restore"), /: stop all servers, then pg_restore /)
        assert.deepStrictEqual(yield* events, before)
        assert.match((yield* here.run(["doctor"], { env })).stdout, /is sound and writable$/m)
        assert.strictEqual((yield* here.run(["prompt", "--session", "fix", ...model, "And now?"], { env })).code, 0)
      })
  )

  it.scopedLive(
    "CL-803: a database that is away, or an address that is none, is one sentence without the password",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const run = (database: string, ...words: ReadonlyArray<string>) =>
          here.run(words, { env: { DAYBOOK_DB: database, DAYBOOK_DEBUG: "1" } })
        for (const words of [
          ["sessions"],
          ["prompt", ...model, "hello"],
          ["events"],
          ["serve", "--http", "127.0.0.1:0"]
        ]) {
          const { code, stderr } = yield* run(`postgres://ada:${password}@127.0.0.1:1/book`, ...words)
          assert.strictEqual(code, 6, stderr)
          assert.match(stderr, /daybook: postgres:\/\/127\.0\.0\.1:1\/book: the database could not be opened: /)
          assert.notInclude(stderr, password)
        }
        const wrong = yield* run(`postgres://ada:${password}@[/book`, "sessions")
        assert.strictEqual(wrong.code, 2, wrong.stderr)
        assert.match(wrong.stderr, /write postgres:/)
        assert.notInclude(wrong.stderr, password)
        assert.deepStrictEqual(readdirSync(here.cwd), [])
      })
  )

  it.scopedLive(
    "CL-804, CL-805: servers share a database; while it is away, prompts get 503 and when to come back",
    () =>
      Effect.gen(function* () {
        const [one, other, database] = [yield* place, yield* place, yield* address]
        const proxy = yield* LossyProxy.make(database)
        const [here, there] = [yield* served(one, proxy.url), yield* served(other, database)]
        const made = yield* here("/sessions", { location: { directory: one.cwd }, title: "shared" })
        const { id } = yield* Schema.decodeUnknown(Made)(yield* Effect.promise(() => made.json()))
        const shown = yield* there(`/sessions/${id}`)
        assert.include(yield* Effect.promise(() => shown.text()), "shared")
        yield* here(`/sessions/${id}/prompts`, { prompt: { text: "Where is the heron?" }, resume: false })
        for (const ask of [here, there]) {
          const found = yield* ask("/search?query=heron")
          assert.include(yield* Effect.promise(() => found.text()), "shared")
          const prompts = yield* ask("/prompts?words=heron")
          assert.include(yield* Effect.promise(() => prompts.text()), "Where is the heron?")
        }
        proxy.cut()
        const refused = yield* here(`/sessions/${id}/prompts`, { prompt: { text: "hello" }, resume: false })
        assert.strictEqual(refused.status, 503, yield* Effect.promise(() => refused.clone().text()))
        assert.strictEqual(refused.headers.get("retry-after"), "1")
        assert.notInclude(yield* Effect.promise(() => refused.text()), password)
        proxy.mend()
        const admitted = yield* here(`/sessions/${id}/prompts`, { prompt: { text: "hello" }, resume: false })
        assert.isTrue(admitted.ok)
      })
  )

  it.scopedLive(
    "CL-806, CL-807: copy moves sessions to PostgreSQL, where they go on, and back; a differing one is named",
    () =>
      Effect.gen(function* () {
        const [here, database] = [yield* place, yield* address]
        const env = { DAYBOOK_DB: database }
        const there = (...words: ReadonlyArray<string>) => here.run(words, { env })
        const well = (ended: Ended) => assert.strictEqual(ended.code, 0, ended.stderr)
        const prompt = ["prompt", "--session", "fix", ...model]
        well(yield* here.run([...prompt, "first"]))
        const copied = yield* here.run(["copy", here.database, database])
        assert.match(copied.stdout, /^1 session, \d+ events copied and compared\n$/)
        assert.strictEqual((yield* there("messages", "fix")).stdout, (yield* here.run(["messages", "fix"])).stdout)
        const again = yield* here.run(["copy", here.database, database])
        assert.strictEqual(again.stdout, "0 sessions, 0 events copied and compared; 1 session there before\n")
        well(yield* there(...prompt, "second"))
        well(yield* here.run(["copy", database, here.database]))
        assert.include((yield* here.run(["messages", "fix"])).stdout, "second")
        well(yield* there("rename", "fix", "theirs"))
        well(yield* here.run(["rename", "fix", "ours"]))
        const refused = yield* here.run(["copy", database, here.database])
        assert.strictEqual(refused.code, 1)
        assert.match(
          refused.stderr,
          /^ses_\w+ was not copied: another event \d+ is in the target\ndaybook: 1 session not copied/
        )
        for (const { stderr, stdout } of [copied, again, refused]) assert.notInclude(stdout + stderr, password)
      })
  )

  it.scopedLive("CL-808: copy refuses the same database, one in memory, and one that does not exist", () =>
    Effect.gen(function* () {
      const [here, database] = [yield* place, yield* address]
      const code = (...words: ReadonlyArray<string>) => Effect.map(here.run(["copy", ...words]), (ended) => ended.code)
      assert.strictEqual(yield* code(database, database.replace(password, "other")), 2)
      assert.strictEqual(yield* code(":memory:", database), 2)
      assert.strictEqual(yield* code("missing.sqlite", database), 3)
      const mistyped = yield* here.run(["copy", database.replace(/schema=.*/, "schema=mistyped"), "new.sqlite"])
      assert.match(mistyped.stderr, /: it has no schema mistyped yet; daybook prompt creates it\n$/)
      assert.strictEqual(mistyped.code, 3)
      assert.deepStrictEqual(readdirSync(here.cwd), [])
    })
  )
})
