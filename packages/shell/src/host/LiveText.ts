/**
 * Holds what a running command has printed until its reader takes it. The command waits while much is held. What a command
 * that is stopped prints beyond that is left out, and the text says how much. Spec: SL-178 in specs/shell.md.
 */
import { Effect, Option, Queue } from "effect"
import type { OutputStream } from "../output/OutputStore.ts"
import type { Flow } from "../ShellOptions.ts"
import { Printed } from "./HostProtocol.ts"

/** Characters that are held when the command begins to wait, and at most. */
const many = 262_144
const most = 4_194_304

export interface LiveText {
  readonly add: (stream: OutputStream, text: string, flow: Flow) => void
  /** Nothing more is added. */
  readonly end: Effect.Effect<void>
  /** What is held, at least one text; none at the end. The command may print again. */
  readonly take: Effect.Effect<ReadonlyArray<Printed>, Option.Option<never>>
}

export const make: Effect.Effect<LiveText> = Effect.gen(function* () {
  const bell = yield* Queue.sliding<void>(1)
  let held: Array<Printed> = []
  let characters = 0
  let omitted = 0
  let ended = false
  let flow: Flow | undefined
  const ring = () => void bell.unsafeOffer(undefined)

  const taken = (): ReadonlyArray<Printed> => {
    const texts = held
    if (omitted > 0) {
      texts.push(Printed.make({ stream: "stderr", text: `\n[... ${omitted} characters left out ...]\n` }))
    }
    held = []
    characters = 0
    omitted = 0
    flow?.resume()
    return texts
  }

  const take: LiveText["take"] = Effect.suspend(() => {
    if (held.length > 0 || omitted > 0) return Effect.succeed(taken())
    return ended ? Effect.fail(Option.none()) : Effect.zipRight(Queue.take(bell), take)
  })

  return {
    add: (stream, text, now) => {
      flow = now
      if (characters + text.length > most) omitted += text.length
      else {
        const last = held.at(-1)
        if (last?.stream === stream) held[held.length - 1] = Printed.make({ stream, text: last.text + text })
        else held.push(Printed.make({ stream, text }))
        characters += text.length
      }
      if (characters > many) now.pause()
      ring()
    },
    end: Effect.sync(() => {
      ended = true
      ring()
    }),
    take
  }
})
