/**
 * The live page in headless Chromium. Method: `daybook shell watch --serve` runs as a process on a database; the test's process
 * appends to it with a store of its own, and looks at the page as a person does, by names and roles.
 */
import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Browser, Page } from "playwright-core"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { CommandBlocked } from "../../packages/shell/src/domain/ShellError.ts"
import * as ShellRecord from "../../packages/shell/src/record/ShellRecord.ts"
import { build } from "../cli/support/Bundle.ts"
import { jsonLines, type Place, place } from "../cli/support/Process.ts"
import { sharedBrowser, visit as visitWith, type VisitOptions } from "./support/Chromium.ts"
import { append as appendTo, closed, create, opened, ran } from "./support/Facts.ts"
import { lacks } from "../support/Parts.ts"

let browser: Browser
beforeAll(async () => {
  build()
  browser = await sharedBrowser()
})

const [one, two] = [SessionID.make("ses_one"), SessionID.make("ses_two")]

const inStore = <A, E>({ database }: Place, effect: Effect.Effect<A, E, EventLog>) =>
  Effect.provide(effect, Store.layer({ filename: database }))

const append = (here: Place, sessionID: SessionID, ...facts: ReadonlyArray<ShellRecord.ShellFact>) =>
  inStore(here, appendTo(sessionID, ...facts))

/** A place with two sessions. */
const stored = Effect.tap(place, (here) => {
  mkdirSync(dirname(here.database), { recursive: true, mode: 0o700 })
  return inStore(here, Effect.all([create(one), create(two)]))
})

/** Serves until the scope closes; returns the address. */
const serve = (here: Place, words: ReadonlyArray<string> = [], env: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function* () {
    const running = yield* here.start(["shell", "watch", ...words, "--serve", "--json"], { env })
    const text = yield* running.until("stdout", (text) => text.endsWith("\n"))
    return String(jsonLines(text)[0]?.["url"])
  })

const visit = (url: string, options?: VisitOptions) => visitWith(browser, url, options)

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

/** Where pictures of the page go; without it none are made. */
const pictures = process.env["DAYBOOK_PICTURES"]
const picture = (page: Page, name: string, colorScheme: "light" | "dark" = "light") =>
  pictures === undefined
    ? Effect.void
    : act(async () => {
        await page.emulateMedia({ colorScheme })
        await page.screenshot({ path: `${pictures}/${name}.png` })
      })

const isLive = (page: Page) => act(() => page.locator('#status[data-state="live"]').waitFor())
const text = (page: Page, words: string) => act(() => page.getByText(words, { exact: true }).first().waitFor())
const commands = (page: Page) => act(() => page.locator(".command").allTextContents())
const list = (page: Page) => page.getByRole("navigation", { name: "Shells" }).getByRole("button")

describe.skipIf(lacks("chromium"))("the page", () => {
  it.scopedLive(
    "SL-224: it lists the shells as they open, work and close, and names transport, folder and reason",
    () =>
      Effect.gen(function* () {
        const here = yield* stored
        const { page } = yield* visit(yield* serve(here))
        yield* text(page, "No shell has been opened yet. This page shows each one as soon as it opens.")
        yield* append(here, one, opened("1_local", "/home/u"))
        yield* act(() => list(page).filter({ hasText: "no command yet · opened just now" }).waitFor())
        const ssh = { transport: "ssh", host: "ci.example.com", user: "build", auth: { type: "agent" } } as const
        yield* append(here, two, ShellRecord.opened("1_ssh_build@ci.example.com", ssh as never, "/srv"))
        yield* append(here, one, ran("ls", { cwd: "/home/u/shop" }))
        yield* append(here, one, opened("2_local", "/tmp"), ran("true", { cwd: "/tmp" }, "2_local"), closed("2_local"))
        yield* act(() => list(page).filter({ hasText: "destroyed" }).waitFor())
        const rows = yield* act(() => list(page).allTextContents())
        assert.strictEqual(rows.length, 3)
        assert.match(rows[0] ?? "", /^1_localopen\/home\/u\/shop1 command · just now$/)
        assert.match(rows[1] ?? "", /^1_ssh_build@ci\.example\.comopenbuild@ci\.example\.com:22 · \/srvno command yet/)
        assert.match(rows[2] ?? "", /^2_localclosed\/tmp1 command · destroyed just now$/)
        yield* act(() => list(page).nth(2).click())
        yield* act(() => page.getByRole("heading", { name: "2_local" }).waitFor())
        yield* text(page, "destroyed: on request")
        assert.deepStrictEqual(yield* commands(page), ["true"])
        assert.strictEqual(yield* act(() => page.title()), "2 open, Daybook shells")
      })
  )

  it.scopedLive(
    "SL-225: it shows commands with output and errors, how they ended, what was blocked, and checkpoints",
    () =>
      Effect.gen(function* () {
        const here = yield* stored
        yield* append(here, one, opened("1_local", "/home/u"))
        const { page } = yield* visit(yield* serve(here))
        yield* isLive(page)
        yield* append(
          here,
          one,
          ran("npm test", {
            exit_code: 1,
            duration_ms: 3_412,
            stdout: "ok 1\nok 2",
            stderr: "not ok",
            late_output: "late"
          }),
          ShellRecord.blocked("1_local", "rm -rf /", new CommandBlocked({ policy: "operator", reason: "too much" })),
          ShellRecord.checkpointed("1_local", "4f2a", "before"),
          ShellRecord.restored("1_local", "4f2a", 2),
          ran("sleep 9", { exit_code: 124, timed_out: true, truncated: true, output: "out_1" }),
          ran("many", { stdout: Array.from({ length: 90 }, (_, index) => `line ${index}`).join("\n") }),
          closed()
        )
        yield* text(page, "Closed")
        const entries = yield* act(() =>
          page.getByRole("region", { name: "Commands" }).getByRole("listitem").allTextContents()
        )
        const time = String.raw`\d?\d:\d\d:\d\d(?:.[AP]M)?`
        const expected = [
          `Opened local /home/u${time}`,
          `/home/u\\$npm testexit 13.4 s${time}Printed late by earlier commandslateok 1\\nok 2Errorsnot ok`,
          `/home/u\\$rm -rf /blocked${time}Not run, blocked by the operator's policy: too much`,
          `Checkpoint 4f2a before${time}`,
          `Restored 4f2a 2 files changed${time}`,
          `/home/u\\$sleep 9timed out, exit 12412 ms${time}The recorded output is shortened; the whole is kept as out_1.`,
          `/home/u\\$manyexit 012 ms${time}line 0\\n.*line 7Show 74 more linesline 82\\n.*line 89`,
          `Closed destroyed: on request${time}`
        ]
        assert.strictEqual(entries.length, expected.length)
        for (const [index, pattern] of expected.entries())
          assert.match(entries[index] ?? "", new RegExp(`^${pattern}$`, "s"))
        yield* act(() => page.getByRole("figure", { name: "Output" }).first().waitFor())
        yield* act(() => page.getByRole("figure", { name: "Errors" }).waitFor())
        yield* picture(page, "commands")
        yield* picture(page, "dark", "dark")
        yield* act(() => page.getByRole("button", { name: "Show 74 more lines", expanded: false }).click())
        yield* act(() => page.getByText("line 40").waitFor())
        yield* act(() => page.getByRole("button", { name: "Show less", expanded: true }).click())
        assert.strictEqual(yield* act(() => page.getByText("line 40").count()), 0)
      })
  )

  it.scopedLive("SL-226: hostile text stays text, runs nothing and asks nobody, and what is invisible is shown", () =>
    Effect.gen(function* () {
      const here = yield* stored
      const hostile =
        "<script>document.title='owned'</script><img src=http://evil.example/x onerror=\"document.title='owned'\">" +
        "<a href=javascript:alert(1)>x</a> \u001b[2J\u202egpj.exe\u200b\r<base href=//evil.example>"
      yield* append(
        here,
        one,
        opened("1_local", hostile),
        ran(hostile, {
          stdout: hostile,
          stderr: hostile,
          late_output: hostile,
          cwd: hostile,
          output: hostile,
          truncated: true
        }),
        ShellRecord.blocked("1_local", hostile, new CommandBlocked({ policy: "shell", reason: hostile })),
        ShellRecord.checkpointed("1_local", "4f2a", hostile),
        opened(hostile, hostile)
      )
      const url = yield* serve(here)
      const { faults, page, requests } = yield* visit(url)
      yield* isLive(page)
      yield* act(() => list(page).first().click())
      yield* act(() => page.locator(".entry").nth(3).waitFor())
      const shown = hostile.replace("\u001b", "\u241b").replace("\u202e", "⟨U+202E⟩").replace("\u200b", "⟨U+200B⟩")
      assert.strictEqual((yield* commands(page))[0], shown.replace("\r", "\u240d"))
      const texts = (yield* act(() => page.locator("body").allTextContents())).join("")
      assert.isAbove(texts.split("<script>document.title='owned'</script>").length, 10)
      for (const raw of ["\u001b", "\u202e", "\u200b", "\r"]) assert.notInclude(texts, raw)
      const elements = yield* act(() =>
        page.locator("main script, main img, main a, main base, nav a, nav img").count()
      )
      assert.strictEqual(elements, 0)
      const html = yield* act(() => page.evaluate<string>("document.body.outerHTML"))
      for (const raw of ["\u001b", "\u202e", "\u200b"]) assert.notInclude(html, raw)
      assert.strictEqual(yield* act(() => page.title()), "2 open, Daybook shells")
      assert.deepStrictEqual(faults, [])
      const { origin } = new URL(url)
      const own = ["/", "/events", "/icon.svg", "/page.css", "/page.js"].map((path) => `${origin}${path}`)
      assert.deepStrictEqual([...new Set(requests)].sort(), own)
    })
  )

  it.scopedLive("SL-219: the page's policy stops inline scripts, other origins and strings as HTML", () =>
    Effect.gen(function* () {
      const { page } = yield* visit(yield* serve(yield* stored))
      yield* isLive(page)
      const outcome = (code: string) =>
        act(() =>
          page.evaluate<string>(`(async () => { try { ${code}; return "done" } catch (e) { return e.name } })()`)
        )
      assert.strictEqual(yield* outcome("document.body.innerHTML = '<b>x</b>'"), "TypeError")
      assert.strictEqual(yield* outcome("await fetch('http://127.0.0.1:1/')"), "TypeError")
      yield* outcome(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
      )
      assert.strictEqual(yield* act(() => page.evaluate<string>("typeof window.ran")), "undefined")
    })
  )

  it.scopedLive(
    "SL-227: it follows the newest command until the reader scrolls up, and then says how many are new",
    () =>
      Effect.gen(function* () {
        const here = yield* stored
        const many = (from: number, count: number) =>
          Array.from({ length: count }, (_, index) => ran(`command ${from + index}`, { stdout: "a\nb\nc" }))
        yield* append(here, one, opened(), ...many(0, 40))
        const { page } = yield* visit(yield* serve(here))
        const fromEnd = () =>
          act(() =>
            page.evaluate<number>(
              "(s => s.scrollHeight - s.scrollTop - s.clientHeight)(document.getElementById('scroller'))"
            )
          )
        yield* text(page, "command 39")
        assert.isBelow(yield* fromEnd(), 2)
        yield* append(here, one, ...many(40, 2))
        yield* act(() => page.getByText("command 41", { exact: true }).waitFor({ state: "visible" }))
        const scroller = yield* act(() => page.waitForSelector("#scroller"))
        yield* act(() =>
          page.waitForFunction(
            (scroller) => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 2,
            scroller
          )
        )
        yield* act(() => page.getByRole("region", { name: "Commands" }).focus())
        yield* act(() => page.keyboard.press("PageUp"))
        const newest = page.getByRole("button", { name: "Newest" })
        yield* act(() => newest.waitFor())
        const top = yield* act(() => page.evaluate<number>("document.getElementById('scroller').scrollTop"))
        yield* append(here, one, ...many(42, 3))
        const unseen = page.getByRole("button", { name: "3 new" })
        yield* act(() => unseen.waitFor())
        assert.strictEqual(
          yield* act(() => page.evaluate<number>("document.getElementById('scroller').scrollTop")),
          top
        )
        yield* act(() => unseen.click())
        assert.isBelow(yield* fromEnd(), 2)
        yield* act(() => unseen.waitFor({ state: "hidden" }))
      })
  )

  it.scopedLive(
    "SL-227: the filter shows only what contains a text, marks it, and counts it in each shell, also what is new",
    () =>
      Effect.gen(function* () {
        const here = yield* stored
        yield* append(here, one, opened(), ran("make all"), ran("ls", { stdout: "a Makefile" }), ran("pwd"))
        yield* append(here, two, opened("2_local"), ran("true", {}, "2_local"))
        const { page } = yield* visit(yield* serve(here))
        yield* isLive(page)
        yield* act(() => list(page).first().click())
        yield* text(page, "pwd")
        yield* act(() => page.keyboard.press("/"))
        yield* act(() => page.keyboard.type("MAKE"))
        yield* act(() => list(page).filter({ hasText: "2 found" }).waitFor())
        assert.deepStrictEqual(yield* commands(page), ["make all", "ls"])
        const marked = "[...CSS.highlights.get('found')].map((range) => range.startContainer.data).join('|')"
        assert.strictEqual(yield* act(() => page.evaluate<string>(marked)), "make all|a Makefile")
        const long = Array.from({ length: 90 }, (_, index) => (index === 45 ? "a hidden make" : "line")).join("\n")
        yield* append(here, one, ran("pwd"), ran("make clean", { stdout: long }))
        yield* text(page, "make clean")
        assert.deepStrictEqual(yield* commands(page), ["make all", "ls", "make clean"])
        yield* act(() => page.getByText("a hidden make").waitFor())
        yield* act(() => page.keyboard.press("Escape"))
        yield* act(() => page.getByText("pwd").nth(1).waitFor())
        assert.strictEqual((yield* commands(page)).length, 5)
      })
  )

  it.scopedLive("SL-228: of 10,000 commands the document has 300, and the reader reaches the others", () =>
    Effect.gen(function* () {
      const here = yield* stored
      const facts = (from: number) =>
        Array.from({ length: 500 }, (_, index) => ran(`command ${from + index}`, { stdout: "x" }))
      yield* inStore(
        here,
        Effect.flatMap(EventLog, (log) =>
          Effect.forEach(
            Array.from({ length: 20 }, (_, part) => facts(part * 500)),
            (part) => log.append(one, part as never)
          )
        )
      )
      const { page } = yield* visit(yield* serve(here))
      yield* isLive(page)
      yield* text(page, "command 9999")
      assert.strictEqual((yield* commands(page)).length, 300)
      yield* act(() => page.getByRole("button", { name: "Show earlier commands" }).click())
      yield* text(page, "command 9600")
      const earlier = yield* commands(page)
      assert.deepStrictEqual([earlier.length, earlier[0]], [300, "command 9600"])
      yield* act(() => page.keyboard.press("Home"))
      yield* text(page, "command 0")
      yield* act(() => page.getByRole("button", { name: "Show later commands" }).click())
      yield* text(page, "command 399")
      yield* act(() => page.keyboard.press("End"))
      yield* text(page, "command 9999")
      // Scrolled up, the reader keeps what is shown, whatever is added.
      yield* act(() => page.getByRole("region", { name: "Commands" }).press("PageUp"))
      yield* act(() => page.getByRole("button", { name: "Newest" }).waitFor())
      const before = yield* commands(page)
      yield* append(here, one, ran("one more"))
      yield* act(() => page.getByRole("button", { name: "1 new" }).waitFor())
      assert.deepStrictEqual(yield* commands(page), before)
    })
  )

  it.scopedLive(
    "SL-229: after the server was killed and started again it goes on, each command once and in order",
    () =>
      Effect.gen(function* () {
        const here = yield* stored
        yield* append(here, one, opened(), ran("before"))
        const env = { DAYBOOK_WATCH_TOKEN: "a".repeat(22) }
        const first = yield* here.startAlone(["shell", "watch", "--serve", "--json"], { env })
        const url = String(jsonLines(yield* first.until("stdout", (text) => text.endsWith("\n")))[0]?.["url"])
        const { page } = yield* visit(url)
        yield* text(page, "before")
        yield* first.signal("SIGKILL")
        yield* text(page, "Connection lost, trying again")
        yield* append(here, one, ran("while nobody served"))
        const again = yield* serve(here, ["--port", new URL(url).port], env)
        assert.strictEqual(again, url)
        yield* text(page, "Live")
        yield* append(here, one, ran("after"))
        yield* text(page, "after")
        assert.deepStrictEqual(yield* commands(page), ["before", "while nobody served", "after"])
      })
  )

  it.scopedLive("SL-229: it starts again when the log is another one, and says when its session was removed", () =>
    Effect.gen(function* () {
      const [here, other] = [yield* stored, yield* stored]
      yield* append(here, one, opened(), ran("of the first log"), ran("more"), ran("and more"))
      yield* append(other, one, opened(), ran("of the other log"))
      const env = { DAYBOOK_WATCH_TOKEN: "b".repeat(22) }
      const first = yield* here.startAlone(["shell", "watch", one, "--serve", "--json"], { env })
      const url = String(jsonLines(yield* first.until("stdout", (text) => text.endsWith("\n")))[0]?.["url"])
      const { page } = yield* visit(url)
      yield* text(page, "and more")
      yield* first.signal("SIGKILL")
      yield* first.ended
      yield* serve(other, [one, "--port", new URL(url).port], env)
      yield* text(page, "of the other log")
      assert.deepStrictEqual(yield* commands(page), ["of the other log"])
      yield* inStore(
        other,
        Effect.flatMap(EventLog, (log) => log.remove(one))
      )
      yield* text(page, "The session was removed")
    })
  )

  it.scopedLive(
    "SL-229: a page of a damaged log shows what comes before the damage, and says that it cannot read on",
    () =>
      Effect.gen(function* () {
        const here = yield* stored
        yield* append(here, one, opened(), ran("before"), ran("damaged"))
        yield* here.sql("UPDATE event SET data = replace(data, 'damaged', 'changed') WHERE position = 7")
        const { page } = yield* visit(yield* serve(here))
        yield* text(page, "The log cannot be read: daybook doctor says why")
        yield* text(page, "before")
        assert.deepStrictEqual(yield* commands(page), ["before"])
      })
  )

  it.scopedLive("SL-220: the address keeps its token, so that a page can be loaded again", () =>
    Effect.gen(function* () {
      const { page } = yield* visit(yield* serve(yield* stored))
      yield* isLive(page)
      yield* act(() => page.reload())
      yield* isLive(page)
    })
  )

  it.scopedLive("SL-229: a page whose token is no longer valid says what to do, and does not try again", () =>
    Effect.gen(function* () {
      const here = yield* stored
      const first = yield* here.startAlone(["shell", "watch", "--serve", "--json"])
      const url = String(jsonLines(yield* first.until("stdout", (text) => text.endsWith("\n")))[0]?.["url"])
      const { page } = yield* visit(url)
      yield* isLive(page)
      yield* first.signal("SIGKILL")
      yield* first.ended
      yield* serve(here, ["--port", new URL(url).port])
      yield* text(page, "This address is no longer valid: use the one that the command printed last")
    })
  )

  it.scopedLive("SL-224: it works by keyboard, and on a narrow page the list and the commands take turns", () =>
    Effect.gen(function* () {
      const here = yield* stored
      const long = "x".repeat(400)
      yield* append(here, one, opened("1_local", `/${long}`), ran(long, { stdout: long, stderr: long }), ran("first"))
      yield* append(here, two, opened("2_local"), ran("second", {}, "2_local"))
      const { page } = yield* visit(yield* serve(here), { viewport: { width: 360, height: 640 } })
      const width = () => act(() => page.evaluate<number>("document.documentElement.scrollWidth"))
      yield* text(page, "second")
      assert.strictEqual(yield* width(), 360)
      assert.isFalse(yield* act(() => list(page).first().isVisible()))
      yield* act(() => page.getByRole("button", { name: "Shells", expanded: false }).press("Enter"))
      yield* act(() => list(page).first().press("Enter"))
      yield* text(page, "first")
      assert.strictEqual(yield* width(), 360)
      assert.isFalse(yield* act(() => list(page).first().isVisible()))
      yield* act(() => page.keyboard.press("Alt+ArrowDown"))
      yield* text(page, "second")
    })
  )
})
