/**
 * The terminal while a run is followed: what stays is written, and below it the lines that move are drawn again. There is
 * one terminal, and one writer at a time: a question keeps frames waiting until it is answered.
 * Spec: CL-45, CL-46 in specs/cli.md.
 */
import { Clock, Effect, type Scope } from "effect"
import { fstatSync, writeSync } from "node:fs"
import type { OutputClosed, OutputFailed } from "./Errors.ts"
import { Output } from "./Output.ts"
import * as Frame from "./render/Frame.ts"
import { liveLines, tickMillis, type Live } from "./render/LiveLines.ts"
import type { Style } from "./render/Style.ts"
import * as Terminal from "./Terminal.ts"

/** Takes what stays and draws the rest. */
export interface Screen {
  readonly write: (pieces: ReadonlyArray<Frame.Piece>) => Effect.Effect<void, OutputClosed | OutputFailed>
  /** Ends the open row and takes the lines that move away. */
  readonly close: Effect.Effect<void>
}

/** Whether lines can move on stderr. */
export const canMove = (): boolean =>
  process.stderr.isTTY === true && process.env["TERM"] !== "dumb" && (process.env["DAYBOOK_DEBUG"] ?? "") === ""

/** Whether stdout is the terminal that stderr is: then both are one picture. */
export const isShared = (): boolean =>
  process.stdout.isTTY === true && process.stderr.isTTY === true && fstatSync(1).rdev === fstatSync(2).rdev

const size = () => ({ columns: process.stderr.columns || 80, rows: process.stderr.rows || 24 })

const looksOf = ({ dim }: Style): Frame.Looks => {
  const plain = { prefix: "", paint: (row: string) => row }
  return { text: plain, note: plain, reasoning: { prefix: "> ", paint: dim } }
}

export interface Options {
  readonly style: Style
  /** What is known of the run at the time. */
  readonly live: () => Live
  /** Returns when what was said by now has been written. */
  readonly caughtUp: Effect.Effect<void>
}

/** Opens the screen for as long as the scope. */
export const open = ({ caughtUp, live, style }: Options): Effect.Effect<Screen, never, Output | Scope.Scope> =>
  Effect.gen(function* () {
    const output = yield* Output
    const looks = looksOf(style)
    const shared = isShared()
    let frame: Frame.Frame | undefined = Frame.empty
    const send = (picture: string) => output.draw(shared ? "stdout" : "stderr", picture)

    const draw = (pieces: ReadonlyArray<Frame.Piece>) =>
      Terminal.turn(
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          if (frame === undefined) return Effect.void
          const { columns, rows } = size()
          const [next, text] = Frame.next(
            frame,
            pieces,
            liveLines(live(), now, { columns, rows }, style),
            columns,
            looks
          )
          frame = next
          return text === "" ? Effect.void : send(text)
        })
      )

    /** Also at the end of the process, where nothing can be waited for. */
    const end = (): string => {
      if (frame === undefined) return ""
      const text = Frame.close(frame, size().columns, looks)
      frame = undefined
      return text
    }
    const atExit = () => {
      const text = end()
      if (text !== "") writeSync(2, text)
    }
    const close = Terminal.turn(Effect.suspend(() => Effect.ignore(send(end()))))

    yield* Effect.acquireRelease(
      Effect.sync(() => {
        process.on("exit", atExit)
        Terminal.shown({
          caughtUp,
          clear: Effect.suspend(() => {
            if (frame === undefined) return Effect.void
            const text = Frame.close(frame, size().columns, looks)
            frame = Frame.empty
            return Effect.ignore(send(text))
          })
        })
      }),
      () =>
        Effect.zipRight(
          close,
          Effect.sync(() => {
            process.off("exit", atExit)
            Terminal.shown(undefined)
          })
        )
    )
    // A picture of the status that cannot be written is no failure of the run: what is said is written by `write`.
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.ignore(draw([])), tickMillis)))
    return { write: draw, close }
  })
