/**
 * Asks the person at the terminal. An answer is a line typed after the question appeared: earlier input and pasted
 * lines are discarded. Spec: CL-18, CL-35, CL-153, CL-154 in specs/cli.md.
 */
import { isatty } from "node:tty"
import { Effect } from "effect"
import { standard } from "../support/Stream.ts"
import * as Terminal from "./Terminal.ts"
import { NotFound, UsageError } from "../support/Errors.ts"

/** A question: the text above it, and the prompt before the answer. Both are sanitized. */
export interface Question {
  readonly shown?: string
  readonly prompt: string
}

export interface QuestionTerminal {
  readonly keyboard: Terminal.Keyboard
  readonly write: (text: string) => void
  /** The terminal marks pasted text. */
  readonly marksPastes: boolean
}

/** Whether a person can answer: questions go to stderr, answers come from stdin. */
export const canAsk = (): boolean => isatty(0) && isatty(2)

/** One question at a time, because there is one terminal. */
const one = Effect.unsafeMakeSemaphore(1)

/** Runs an effect that asks several questions; no other question is asked between them. */
export const together = one.withPermits(1)

/** Asks one {@link line}, with no other question at the same time. */
export const ask = (prompt: string): Effect.Effect<string | undefined> => together(line({ prompt }))

/** One line of an answer; `undefined` if no one is there or the input ends. Interruption withdraws the question. */
export const line = (question: Question): Effect.Effect<string | undefined> =>
  Effect.suspend(() => (canAsk() ? Terminal.alone(read(here(), question)) : Effect.succeed(undefined)))

/** Goes on only after a yes; the messages are those of the failures without a terminal, and after another answer. */
export const confirm = Effect.fnUntraced(function* (
  question: string,
  { declined, unasked }: { readonly unasked: string; readonly declined: string }
) {
  const answer = yield* ask(`${question} [y/N] `)
  if (answer === undefined) return yield* new UsageError({ message: unasked })
  if (!/^y(?:es)?$/i.test(answer.trim())) return yield* new NotFound({ message: declined })
})

const [backspace, rubout, erase] = ["\u0008", "\u007f", "\u0015"]

/** One line that is not shown while it is typed or pasted; `undefined` if no one is there or the input ends. */
export const hidden = (prompt: string): Effect.Effect<string | undefined> =>
  together(Effect.suspend(() => (canAsk() ? Terminal.alone(unshown(here(), prompt)) : Effect.succeed(undefined))))

const unshown = ({ keyboard, write }: QuestionTerminal, prompt: string) =>
  Effect.async<string | undefined>((resume) => {
    let text = ""
    const end = (answer: string | undefined) => {
      stop()
      write("\n")
      resume(Effect.succeed(answer))
    }
    const stop = keyboard.listen("unseen", (typed) => {
      if (typed === undefined) return end(undefined)
      for (const character of typed) {
        if (character === "\r" || character === "\n") return end(text)
        const isBack = character === backspace || character === rubout
        text = isBack ? text.slice(0, -1) : character === erase ? "" : text + character
      }
    })
    // The terminal echoes nothing any more.
    write(prompt)
    return Effect.sync(stop)
  })

const here = (): QuestionTerminal => ({
  keyboard: Terminal.standard,
  write: (text) => standard().stderr.write(text, () => undefined),
  marksPastes: process.env["TERM"] !== "dumb"
})

/** How long the keyboard must be silent before an answer is accepted. */
const moment = "300 millis"

/** Lines that arrive closer together were not typed. */
const pasteGap = "30 millis"

/** Consumes keys without echo while `use` runs. */
const unseen = <A>({ keyboard }: QuestionTerminal, use: (typed: () => boolean) => Effect.Effect<A>): Effect.Effect<A> =>
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

/** Discards typed input until no key has arrived for a moment. */
const deaf = (place: QuestionTerminal): Effect.Effect<void> =>
  unseen(place, (typed) =>
    Effect.asVoid(Effect.repeat(Effect.delay(Effect.sync(typed), moment), { while: (it) => it }))
  )

const [pasteBegins, pasteEnds] = ["\u001b[200~", "\u001b[201~"]

/** The line without the marks of pastes that end within it; `undefined` for several lines or an unfinished paste. */
const typedLine = (text: string): string | undefined => {
  const words = text.replace(/\r?\n$/, "")
  if (/[\r\n]/.test(words)) return undefined
  const parts = words.split(pasteBegins)
  return parts.slice(1).some((part) => !part.includes(pasteEnds))
    ? undefined
    : words.replaceAll(pasteBegins, "").replaceAll(pasteEnds, "")
}

/** The next whole line from the system, without input that arrived before the question. */
const nextLine = ({ keyboard }: QuestionTerminal) =>
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

/** Asks at a terminal until a line was typed. */
export const read = (place: QuestionTerminal, { prompt, shown = "" }: Question): Effect.Effect<string | undefined> =>
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
      place.write("\nPasted lines are not accepted as an answer: type one.\n")
    }
  }).pipe(
    // The next output begins on a new line.
    Effect.onInterrupt(() => Effect.sync(() => place.write("\n"))),
    (asking) => (place.marksPastes ? marking(place, asking) : asking)
  )

/** Has the terminal mark pasted text while `asking` runs, and resets it even if the process exits. */
const marking = <A>({ write }: QuestionTerminal, asking: Effect.Effect<A>): Effect.Effect<A> => {
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
