/** The screen in lines only: asks for one prompt at a time and follows each to its end. Spec: SC-539. */
import { createInterface } from "node:readline"
import { Effect, Stream } from "effect"
import type { Naming } from "@daybook/core/session/Naming"
import { Sessions } from "@daybook/core/session/Sessions"
import { Identifiers } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import { titleOfPrompt } from "@daybook/log/domain/Title"
import { runFollower } from "../host/Runtime.ts"
import { failureOfCause } from "../render/Failure.ts"
import { oneLine, visible } from "../render/Plain.ts"
import * as Breadcrumb from "../terminal/Breadcrumb.ts"
import { Output } from "../terminal/Output.ts"
import * as PromptLine from "../terminal/PromptLine.ts"
import * as Commands from "./Commands.ts"
import type { Options as ScreenOptions } from "./Screen.ts"
import type { Preferred } from "./Talk.ts"

export type Options = Pick<
  ScreenOptions,
  "directory" | "offered" | "preferred" | "projects" | "recalled" | "session" | "verb"
>

/** Choices that are printed, at most. */
const most = 20

/** The lines of a stdin that is not a terminal, one at each call. */
const lines = Effect.gen(function* () {
  const pull = yield* Stream.toPull(
    Stream.fromAsyncIterable(createInterface({ input: process.stdin }), (cause) => cause).pipe(Stream.rechunk(1))
  )
  return Effect.map(pull, ([line]) => line).pipe(Effect.catchAll(() => Effect.succeed(undefined)))
})

export const run = (options: Options) => Effect.scoped(asking(options))

const asking = Effect.fn("Plain.run")(function* (options: Options) {
  // The follower draws nothing again on a terminal that cannot move its cursor.
  process.env["TERM"] = "dumb"
  const output = yield* Output
  const sessions = yield* Sessions
  const identifiers = yield* Identifiers
  const RunFollower = yield* runFollower
  const earlier = yield* options.recalled
  const next = process.stdin.isTTY ? PromptLine.read(earlier) : yield* lines
  const s = { session: options.session, preferred: options.preferred as Preferred, isOver: false }
  const say = (text: string) => output.note(`${visible(text).replace(/\n$/, "")}\n`)
  const print = (text: string) => void Effect.runFork(say(text))

  const desk: Commands.Desk = {
    session: () => s.session,
    directory: options.directory,
    print,
    keys: "",
    note: print,
    choose: ({ choices, title }) =>
      Effect.gen(function* () {
        const shown = choices.slice(0, most)
        const rows = shown.map(
          ({ about, label, lead = "" }, at) =>
            `${at + 1}  ${lead}${oneLine(label)}${about === undefined ? "" : `  ${oneLine(about)}`}`
        )
        yield* say(`${title}:\n${rows.join("\n")}\nits number, or nothing:`)
        return shown[Number(yield* next) - 1]
      }),
    edit: (text) => print(`the prompt was: ${text}`),
    show: (session, found = "") =>
      Effect.suspend(() => {
        s.session = session
        const where =
          session === undefined ? "a new session begins with your next prompt" : `session ${nameOf(session)}`
        return say(`${where}\n${found}`)
      }),
    prefer: (preferred) => {
      s.preferred = { ...s.preferred, ...preferred }
    },
    verb: (words) => Effect.provideService(options.verb(words), Output, output),
    leave: Effect.sync(() => {
      s.isOver = true
    })
  }

  const create = (text: string) =>
    sessions.create({
      location: { directory: options.directory },
      ...(options.projects === undefined ? {} : { model: options.projects }),
      ...s.preferred,
      title: titleOfPrompt(text),
      provisional: true
    })

  const prompt = Effect.fnUntraced(function* (text: string) {
    const session = s.session ?? (yield* create(text))
    s.session = session
    yield* Breadcrumb.leave({ directory: options.directory, sessionID: session.id })
    const id = yield* identifiers.message
    const start = RunFollower.admitted({ id, sessionID: session.id, prompt: { text } })
    yield* RunFollower.follow({ sessionID: session.id, json: false, promptID: id, start })
  })

  const take = (text: string): Effect.Effect<void, unknown, Commands.Services | Naming> => {
    const found = Commands.find(text === "?" ? "/help" : text)
    if (found !== undefined) return found.command.run(desk, found.rest)
    return Effect.flatMap(Commands.refusal(text, options.directory), (why) =>
      why === undefined ? prompt(text) : say(why)
    )
  }

  yield* say(s.session === undefined ? "daybook: /help lists commands" : `session ${nameOf(s.session)}`)
  if (s.session === undefined && options.offered !== undefined) {
    yield* say(`/sessions ${options.offered.id} goes on with "${nameOf(options.offered)}"`)
  }
  while (!s.isOver) {
    const text = yield* next
    if (text === undefined) return
    if (text.trim() === "") continue
    // One that fails or is stopped does not end the screen.
    yield* Effect.catchAllCause(take(text.trim()), (cause) => say(failureOfCause(cause).sentence ?? "stopped"))
  }
})

const nameOf = ({ id, title }: Session): string => oneLine(title ?? id)
