/** What the live page keeps of the events, as pure values: the same shells as `ShellList`, in bounded memory. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc, Struct } from "effect"
import { type Shell, Filter, ShellBook as Book } from "../../packages/inspector/src/page/shells/ShellBook.ts"
import { fold } from "../../packages/inspector/src/page/shells/ShellTexts.ts"
import * as ShellList from "../../packages/shell/src/record/ShellList.ts"
import type { ShellEvent } from "../../packages/shell/src/record/ShellList.ts"
import * as ShellRecord from "../../packages/shell/src/record/ShellRecord.ts"
import { forAll } from "../support/Cases.ts"
import { closed, eventsOf, opened, ran } from "./support/Facts.ts"

const bookOf = (events: ReadonlyArray<ShellEvent>, bounds = {}) => {
  const book = new Book(bounds)
  for (const event of events) book.add(event)
  return book
}

const keysOf = (shells: ReadonlyArray<Shell>) => shells.map(({ key }) => key)

const commandsOf = (shell: Shell | undefined) =>
  shell?.entries.map(({ event }) => ("command" in event.data ? event.data.command : event.type))

/** Events of two sessions, one after another in the log. */
const logs = fc
  .array(
    fc.record({
      session: fc.constantFrom("ses_a", "ses_b"),
      fact: fc
        .tuple(fc.constantFrom(opened, closed, "ran" as const, "checkpoint" as const), fc.nat(140).map(String))
        .map(([make, id]) =>
          make === "ran" ? ran("make", {}, id) : make === "checkpoint" ? ShellRecord.checkpointed(id, "cp_1") : make(id)
        )
    }),
    { maxLength: 900, size: "max" }
  )
  .map((made) => {
    const events = eventsOf(made.map(({ fact }) => fact))
    return events.map((event, at) => ({ ...event, sessionID: made[at]?.session ?? "" }) as ShellEvent)
  })

it("SL-224: the page lists the shells that ShellList has, each with the same facts, and has the events of each in order", () => {
  forAll([logs], 30, (events) => {
    const book = bookOf(events)
    const listed = ["ses_a", "ses_b"].flatMap((session) => {
      const own = events.filter(({ sessionID }) => sessionID === session)
      const list = own.reduce(ShellList.evolve, ShellList.initial)
      return [...list].map(([id, shell]) => [`${session} ${id}`, shell] as const)
    })
    assert.deepStrictEqual(new Map(book.shells.map(({ key, listed }) => [key, listed])), new Map(listed))
    for (const shell of book.shells) {
      const own = events.filter((event) => `${event.sessionID} ${event.data.shellID}` === shell.key)
      const kept = shell.entries.map(({ event }) => event)
      assert.deepStrictEqual(kept, own.slice(-kept.length))
    }
    const open = book.shells.map(({ listed }) => listed.closed === undefined)
    assert.deepStrictEqual(
      open,
      [...open].sort((a, b) => Number(b) - Number(a))
    )
  })
})

it("SL-224: open shells come first in the order of their opening, then closed ones, the last closed first", () => {
  const book = bookOf(
    eventsOf([opened("a"), opened("b"), opened("c"), opened("d"), closed("b"), closed("a"), ran("x", {}, "c")])
  )
  assert.deepStrictEqual(keysOf(book.shells), ["ses_a c", "ses_a d", "ses_a a", "ses_a b"])
})

it("SL-225: a command has the folder in which it started, if the log has it", () => {
  const events = eventsOf([ran("a", { cwd: "/one" }), ran("b", { cwd: "/two" }), ran("c")])
  const [shell] = bookOf(events).shells
  assert.deepStrictEqual(shell?.entries.map(Struct.get("folder")), [undefined, "/one", "/two"])
})

it("SL-228: beyond the limits of events and characters the oldest events are dropped, and counted", () => {
  const long = "x".repeat(100)
  const facts = Array.from({ length: 50 }, (_, index) =>
    ran(`${index}`.padEnd(4) + long, {}, index % 2 === 0 ? "a" : "b")
  )
  const [byCount, byLength] = [{ entries: 7 }, { characters: 730 }].map((bounds) => bookOf(eventsOf(facts), bounds))
  for (const book of [byCount, byLength]) {
    const [a, b] = ["ses_a a", "ses_a b"].map((key) => book?.get(key))
    assert.deepStrictEqual([a?.entries.length, a?.dropped, b?.entries.length, b?.dropped], [3, 22, 4, 21])
    assert.deepStrictEqual(
      commandsOf(a)?.map((text) => text.trim().slice(0, 2)),
      ["44", "46", "48"]
    )
  }
})

it("SL-228: the events of closed shells that are no longer listed are forgotten, and make room", () => {
  const facts = Array.from({ length: 30 }, (_, index) => [
    opened(`${index}`),
    ran("x".repeat(100)),
    closed(`${index}`)
  ]).flat()
  const book = bookOf(eventsOf(facts), { closed: 5, characters: 1_000 })
  assert.deepStrictEqual(
    keysOf(book.shells).slice(1),
    [29, 28, 27, 26, 25].map((index) => `ses_a ${index}`)
  )
  // The commands of the open shell 1_local: ten fit, whatever the forgotten shells had.
  assert.strictEqual(book.get("ses_a 1_local")?.entries.length, 10)
})

it("SL-227: a filter finds a text in commands, outputs, reasons and labels, in any case, as it is written", () => {
  const blocked = ShellRecord.blocked("1_local", "rm", { policy: "shell", reason: "Needle" } as never)
  const events = eventsOf([
    ran("a needle"),
    ran("b", { stdout: "NEEDLE" }),
    ran("c", { stderr: "x needle" }),
    ran("d", { late_output: "needle" }),
    ran("e"),
    blocked,
    ShellRecord.checkpointed("1_local", "cp_1", "needle.*"),
    closed()
  ])
  const [shell] = bookOf(events).shells
  assert.isDefined(shell)
  const found = (text: string) => new Filter(text).matches(shell).map(({ event }) => event.seq)
  assert.deepStrictEqual(found("needle"), [0, 1, 2, 3, 5, 6])
  assert.deepStrictEqual(found("le.*"), [6])
  assert.deepStrictEqual(found("nothing"), [])
})

it("SL-227: a filter that has searched a shell finds what is added later, and forgets what is dropped", () => {
  forAll(
    [fc.array(fc.constantFrom("yes", "no")), fc.nat(20), fc.integer({ min: 1, max: 12 })],
    40,
    (commands, at, entries) => {
      const book = new Book({ entries })
      const filter = new Filter("y")
      const events = eventsOf([opened(), ...commands.map((command) => ran(command))])
      for (const [index, event] of events.entries()) {
        book.add(event)
        const [shell] = book.shells
        if (index % (at + 1) === 0 && shell !== undefined) {
          assert.deepStrictEqual(filter.matches(shell), new Filter("y").matches(shell))
        }
      }
    }
  )
})

const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}`).join("\n")

it("SL-225: a long text shows both of its ends, and says how much is between them; a short one is whole", () => {
  assert.isUndefined(fold(lines(24)))
  assert.isUndefined(fold("x".repeat(4_000)))
  const [head, hidden, tail] = fold(lines(100)) ?? []
  assert.deepStrictEqual([head, tail], [lines(8), lines(100).split("\n").slice(-8).join("\n")])
  assert.deepInclude(hidden, { lines: 84 })
  const end = "x".repeat(1_500)
  assert.deepStrictEqual(fold("x".repeat(5_000)), [end, { lines: 0, characters: 2_000 }, end])
})

it("SL-227: a find that a folded text hides is shown with its line", () => {
  const text = lines(100)
  assert.deepStrictEqual(fold(text, /line 5$|line 97/), fold(text))
  assert.deepStrictEqual(fold(text, /absent/), fold(text))
  const pieces = fold(text, /NE 50/i)
  assert.deepStrictEqual(
    pieces?.map((piece) => (typeof piece === "string" ? piece.slice(0, 7) : piece.lines)),
    ["line 0\n", 42, "line 50", 41, "line 92"]
  )
  const long = `${"x".repeat(3_000)}needle${"x".repeat(3_000)}`
  assert.strictEqual(fold(long, /needle/)?.[2], `${"x".repeat(200)}needle${"x".repeat(200)}`)
})

it("SL-225: the pieces of a text are the text, split no character, and show little of it", () => {
  const part = fc.constantFrom("\n", "x", "💡".repeat(700), "y".repeat(900), "needle")
  forAll([fc.array(part, { size: "large" }), fc.constantFrom(undefined, /needle/, /y\n/)], 40, (parts, pattern) => {
    const text = parts.join("")
    const pieces = fold(text, pattern)
    if (pieces === undefined) return
    let [at, shown] = [0, 0]
    for (const piece of pieces) {
      if (typeof piece !== "string") {
        at += piece.characters
        continue
      }
      assert.strictEqual(text.slice(at, at + piece.length), piece)
      // A lone surrogate cannot be encoded.
      assert.doesNotThrow(() => encodeURIComponent(piece))
      at += piece.length
      shown += piece.length
    }
    assert.strictEqual(at, text.length)
    assert.isAtMost(shown, 3_500)
  })
})
