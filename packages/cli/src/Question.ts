/**
 * Asking the person at the terminal. An answer is a line that was typed after the question could be read: what was typed
 * before is thrown away, and so is what comes all at once. Spec: CL-18, CL-35, CL-153, CL-154 in specs/cli.md.
 */
import { Effect } from "effect"
import * as Keyboard from "./Keyboard.ts"
import { standard } from "./Stream.ts"
import * as Terminal from "./Terminal.ts"

/** A question: what is to be read first, and what stands before the answer. Both are safe for a terminal. */
export interface Question {
  readonly shown?: string
  readonly prompt: string
}

/** Where it is asked. */
export interface Place {
  readonly keyboard: Keyboard.Keyboard
  readonly write: (text: string) => void
  /** The terminal marks what is pasted. */
  readonly marksPastes: boolean
}

/** Whether somebody is there to answer: questions go to stderr, answers come from stdin. */
export const canAsk = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true

/** There is one terminal: one question at a time. */
const one = Effect.unsafeMakeSemaphore(1)

/** Questions that belong together: no other is asked between them. */
export const together = one.withPermits(1)

/** {@link line}, alone. */
export const ask = (prompt: string): Effect.Effect<string | undefined> => together(line({ prompt }))

/** One line of an answer; `undefined` when nobody is there or the input ends. Interruption withdraws the question. */
export const line = (question: Question): Effect.Effect<string | undefined> =>
  Effect.suspend(() => (canAsk() ? Terminal.alone(read(here(), question)) : Effect.succeed(undefined)))

const here = (): Place => ({
  keyboard: Keyboard.standard,
  write: (text) => standard().stderr.write(text, () => undefined),
  marksPastes: process.env["TERM"] !== "dumb"
})

/** How long no key may come before an answer is taken. */
const moment = "300 millis"

/** Lines that come closer together were not typed. */
const pasteGap = "30 millis"

/** What is typed meanwhile, key by key. */
const unseen = <A>({ keyboard }: Place, use: (typed: () => boolean) => Effect.Effect<A>): Effect.Effect<A> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      let keys = false
      const stop = keyboard.listen("unseen", () => {
        keys = true
      })
      return {
        stop,
        typed: () => {
          const before = keys
          keys = false
          return before
        }
      }
    }),
    ({ typed }) => use(typed),
    ({ stop }) => Effect.sync(stop)
  )

/** Throws away what was typed, until no key has come for a moment. */
const deaf = (place: Place): Effect.Effect<void> =>
  unseen(place, (typed) =>
    Effect.asVoid(Effect.repeat(Effect.delay(Effect.sync(typed), moment), { while: (it) => it }))
  )

const [pasteBegins, pasteEnds] = ["\u001b[200~", "\u001b[201~"]

/** The line without the marks of pastes that end within it; `undefined`: not a line that was typed. */
const typedLine = (text: string): string | undefined => {
  const words = text.replace(/\r?\n$/, "")
  if (/[\r\n]/.test(words)) return undefined
  const parts = words.split(pasteBegins)
  return parts.slice(1).some((part) => !part.includes(pasteEnds))
    ? undefined
    : words.replaceAll(pasteBegins, "").replaceAll(pasteEnds, "")
}

/** The next line as the system gives it: whole, and without what came before it was asked for. */
const nextLine = ({ keyboard }: Place) =>
  Effect.async<string | undefined>((resume) => {
    let text = ""
    const stop = keyboard.listen("lines", (typed) => {
      text += typed ?? ""
      if (typed !== undefined && !text.includes("\n")) return
      stop()
      resume(Effect.succeed(typed === undefined && text === "" ? undefined : text))
    })
    return Effect.sync(stop)
  })

/** Asks at a place until a line was typed. */
export const read = (place: Place, { prompt, shown = "" }: Question): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    if (shown !== "") place.write(shown)
    for (;;) {
      yield* deaf(place)
      place.write(prompt)
      const text = yield* nextLine(place)
      if (text === undefined) return undefined
      const more = yield* unseen(place, (typed) => Effect.delay(Effect.sync(typed), pasteGap))
      const words = more ? undefined : typedLine(text)
      if (words !== undefined) return words
      place.write("\nThat came all at once, and is not taken as an answer: type one.\n")
    }
  }).pipe(
    // Whatever comes next begins on a line of its own.
    Effect.onInterrupt(() => Effect.sync(() => place.write("\n"))),
    (asking) => (place.marksPastes ? marking(place, asking) : asking)
  )

/** Has the terminal mark what is pasted, and no longer, also where the process leaves at once. */
const marking = <A>({ write }: Place, asking: Effect.Effect<A>): Effect.Effect<A> => {
  const end = () => write("\u001b[?2004l")
  return Effect.acquireUseRelease(
    Effect.sync(() => {
      process.once("exit", end)
      write("\u001b[?2004h")
    }),
    () => asking,
    () =>
      Effect.sync(() => {
        process.off("exit", end)
        end()
      })
  )
}
