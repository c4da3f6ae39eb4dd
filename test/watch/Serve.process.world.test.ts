/** `daybook shell watch --serve` as a process: its address, its options, and its end. */
import { mkdirSync, readFileSync } from "node:fs"
import { createServer, type Server } from "node:net"
import { dirname } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect } from "effect"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { build } from "../cli/support/Bundle.ts"
import { jsonLines, type Options, type Place, place } from "../cli/support/Process.ts"
import { append, create, opened, ran } from "./support/Facts.ts"
import { ask, read, received } from "./support/Http.ts"

beforeAll(() => void build())

const [one, two] = [SessionID.make("ses_one"), SessionID.make("ses_two")]

const stored = Effect.tap(place, ({ database }) => {
  mkdirSync(dirname(database), { recursive: true, mode: 0o700 })
  return Effect.all([create(one), create(two), append(one, opened(), ran("a")), append(two, opened(), ran("b"))]).pipe(
    Effect.provide(Store.layer({ filename: database }))
  )
})

const words = ["shell", "watch", "--serve"]

const start = (here: Place, more: ReadonlyArray<string> = [], options?: Options) =>
  Effect.gen(function* () {
    const running = yield* here.start([...words, "--json", ...more], options)
    const [ready] = jsonLines(yield* running.until("stdout", (text) => text.endsWith("\n")))
    return { running, url: new URL(String(ready?.["url"])) }
  })

const isCaughtUp = (text: string) => received(text).at(-1)?.event === "caught-up"

const streamOf = (url: URL) => read(`${url.origin}/events${url.search}`)

/** The commands that a page gets at first. */
const replayed = (url: URL) =>
  Effect.map(
    Effect.flatMap(streamOf(url), ({ until }) => until(isCaughtUp)),
    (text) => received(text).flatMap(({ data }) => /"command":"(\w+)"/.exec(data ?? "")?.[1] ?? [])
  )

it.scopedLive("SL-215: it prints an address of this machine with a new token, serves there, and changes nothing", () =>
  Effect.gen(function* () {
    const here = yield* stored
    const before = readFileSync(here.database)
    const plain = yield* here.start(words)
    const line = yield* plain.until("stdout", (text) => text.endsWith("\n"))
    assert.match(line, /^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{22}\n$/)
    yield* plain.until("stderr", (text) => text === "open the page in a browser; Ctrl-C ends it\n")
    const { running, url } = yield* start(here)
    assert.deepStrictEqual(jsonLines(yield* running.until("stdout", () => true)), [{ type: "ready", url: url.href }])
    assert.notStrictEqual(url.searchParams.get("token"), new URL(line.trim()).searchParams.get("token"))
    const { body, headers } = yield* ask(url.href)
    assert.strictEqual(headers["content-type"], "text/html; charset=utf-8")
    assert.match(body, /^<!doctype html>\n<html lang="en">/)
    for (const name of ["page.css", "page.js", "icon.svg"]) {
      assert.include(body, `"${name}${url.search}"`)
      assert.isAbove((yield* ask(`${url.origin}/${name}${url.search}`)).body.length, 200)
    }
    assert.deepStrictEqual(yield* replayed(url), ["a", "b"])
    assert.isTrue(before.equals(readFileSync(here.database)))
  })
)

it.scopedLive("SL-215: a signal ends it with exit code 0, and the connections of its readers", () =>
  Effect.gen(function* () {
    const here = yield* stored
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      const running = yield* here.startAlone([...words, "--json"])
      const [ready] = jsonLines(yield* running.until("stdout", (text) => text.endsWith("\n")))
      const reader = yield* streamOf(new URL(String(ready?.["url"])))
      yield* reader.until(isCaughtUp)
      yield* running.signal(signal)
      yield* reader.ended
      assert.strictEqual((yield* running.ended).code, 0)
    }
  })
)

/** A port at which a server listens. */
const usedPort = Effect.map(
  Effect.acquireRelease(
    Effect.async<Server>((resume) => {
      const server = createServer().listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ),
  (server) => {
    const address = server.address()
    return typeof address === "object" && address !== null ? address.port : 0
  }
)

it.scopedLive(
  "SL-216: it takes a session, a port and a start; other options are refused, and a port that is used",
  () =>
    Effect.gen(function* () {
      const here = yield* stored
      const taken = yield* usedPort
      const ended = (...more: ReadonlyArray<string>) =>
        Effect.map(here.run(["shell", "watch", ...more]), ({ code, stderr, stdout }) => [code, stdout, stderr])
      const surplus = "daybook: the page of --serve follows and shows what commands print: leave out"
      assert.deepStrictEqual(yield* ended("--serve", "--follow"), [2, "", `${surplus} --follow\n`])
      assert.deepStrictEqual(yield* ended("--serve", "--follow", "--output"), [
        2,
        "",
        `${surplus} --follow and --output\n`
      ])
      assert.deepStrictEqual(yield* ended("--port", "80"), [
        2,
        "",
        "daybook: --port is the port of the page: add --serve\n"
      ])
      assert.deepStrictEqual((yield* ended("--serve", "--port", "65536")).slice(0, 2), [2, ""])
      assert.deepStrictEqual((yield* ended("--serve", "--port", "0")).slice(0, 2), [2, ""])
      assert.deepStrictEqual((yield* ended("--serve", "three")).slice(0, 2), [3, ""])
      assert.deepStrictEqual(yield* ended("--serve", "--port", String(taken)), [
        4,
        "",
        `daybook: cannot listen at port ${taken}: another process does; choose another one, or none\n`
      ])
      const { url } = yield* start(here, ["ses_two"])
      assert.deepStrictEqual(yield* replayed(url), ["b"])
      assert.include((yield* ask(url.href)).body, "shells of ses_two")
      const later = yield* start(here, ["--after", "6"])
      assert.deepStrictEqual(yield* replayed(later.url), ["b"])
    })
)

it.scopedLive(
  "SL-217: DAYBOOK_WATCH_TOKEN sets the token; one that is too short or has other characters is refused",
  () =>
    Effect.gen(function* () {
      const here = yield* stored
      const token = "My_own-token_of_22_and_more"
      const { url } = yield* start(here, [], { env: { DAYBOOK_WATCH_TOKEN: token } })
      assert.strictEqual(url.search, `?token=${token}`)
      assert.strictEqual((yield* ask(url.href)).status, 200)
      for (const wrong of ["x".repeat(21), "x".repeat(129), `${"x".repeat(22)}&`, `${"x".repeat(22)} `]) {
        const { code, stderr } = yield* here.run(words, { env: { DAYBOOK_WATCH_TOKEN: wrong } })
        assert.deepStrictEqual(
          [code, stderr],
          [2, "daybook: DAYBOOK_WATCH_TOKEN: expected 22 to 128 letters, digits, - or _\n"]
        )
      }
    })
)
