/**
 * The session screen: the session's lines, and below them an editor and a status line. Everything that happens is a change of
 * state, which is drawn at most every few milliseconds. Spec: specs/screen.md.
 *
 *   keys ───────┐          ┌─> editor, questions, lists
 *   log, deltas ┼─> state ─┤
 *   asks ───────┘          └─> frame ─> terminal
 */
import { readFileSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { Deferred, Effect, Fiber, FiberSet, Option, Queue, Stream } from "effect"
import type { Session } from "@daybook/log/domain/Message"
import type { ModelRef } from "@daybook/log/domain/Values"
import { Mcp } from "@daybook/mcp/Mcp"
import { Remote } from "../host/Remote.ts"
import { oneLine } from "../render/Plain.ts"
import { fit } from "../render/LiveLines.ts"
import { CommandEnded } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import type { Output } from "../terminal/Output.ts"
import { type Asks, watchServer } from "./Asks.ts"
import * as RunMode from "../arguments/RunMode.ts"
import type * as Commands from "./Commands.ts"
import { keys } from "./Commands.ts"
import * as Dialogs from "./Dialogs.ts"
import type { SavedDraft } from "./Draft.ts"
import * as Draw from "./Draw.ts"
import * as Editing from "./Editing.ts"
import * as Frame from "./Frame.ts"
import * as Input from "./Input.ts"
import * as Talk from "./Talk.ts"
import { type Theme, themeOf } from "./Theme.ts"
import * as Tty from "./Tty.ts"
import * as Words from "./Words.ts"

export interface Options {
  readonly directory: string
  /** The session to show first; undefined for a new one. */
  readonly session: Session | undefined
  /** The session that an empty Enter goes on with. */
  readonly offered: Session | undefined
  readonly preferred: Talk.Preferred
  /** The model of the folder's project for new sessions. */
  readonly projects: ModelRef | undefined
  /** What an earlier screen left in its editor. */
  readonly left: SavedDraft
  readonly asks: Asks
  /** Earlier prompts, the newest first. */
  readonly recalled: Effect.Effect<ReadonlyArray<string>>
  /** Whether the screen notifies a terminal in the background (SC-542). */
  readonly notifies: boolean
  /** Runs a verb of the command line. */
  readonly verb: (words: ReadonlyArray<string>) => Effect.Effect<void, unknown, Output>
}

/** The folder of git's data for a work tree. */
const gitFolder = (directory: string): string | undefined => {
  const path = join(directory, ".git")
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory() === true) return path
  if (found === undefined) return dirname(directory) === directory ? undefined : gitFolder(dirname(directory))
  const [, named] = /^gitdir: (.+)$/m.exec(readFileSync(path, "utf8")) ?? []
  return named === undefined ? undefined : resolve(directory, named)
}

/** The git branch of a folder (SC-511), or the beginning of the commit; undefined outside of a work tree. */
export const branchOf = (directory: string): string | undefined => {
  try {
    const folder = gitFolder(directory)
    if (folder === undefined) return undefined
    const head = readFileSync(join(folder, "HEAD"), "utf8").trim()
    return /^ref: refs\/heads\/(.+)$/.exec(head)?.[1] ?? head.slice(0, 8)
  } catch {
    return undefined
  }
}

type Lines = (columns: number) => ReadonlyArray<string>

/** What the screen is made of, and what changes. */
interface Screen {
  readonly options: Options
  readonly talk: Talk.Talk
  /** The terminal, which is opened last: its keys need all the others. */
  readonly tty: () => Tty.Tty
  readonly input: Input.Input
  readonly dialogs: Dialogs.Dialogs
  readonly choosing: Dialogs.Choosing
  readonly narrowed: ReturnType<typeof Draw.makeNarrowing>
  readonly remote: Remote["Type"]
  readonly mode: string | undefined
  readonly state: State
  readonly changed: () => void
}

interface State {
  /** Complete lines that are not drawn yet, at the width of the drawing. */
  readonly kept: Array<Lines>
  theme: Theme
  frame: Frame.Frame
  shown: Draw.Details
  branch: string | undefined
  /** Servers of tools that failed. */
  lost: ReadonlyArray<string>
  hint: string
  wasRunning: boolean
  /** The person looks at another window. */
  away: boolean
}

const initial = (directory: string): State => ({
  kept: [],
  theme: themeOf(process.env, Tty.likelyBackground(process.env)),
  frame: Frame.empty,
  shown: { thinking: true, results: false },
  branch: branchOf(directory),
  lost: [],
  hint: "",
  wasRunning: false,
  away: false
})

/** The shortest time between two drawings, and how many times longer than a drawing took. A key does not wait. */
const pace = { least: 80, times: 30 }

/** How often what shows the time is drawn, in milliseconds. */
const tick = 200

/** A verb's text as lines. */
const printed =
  (text: string): Lines =>
  (columns) => [
    "",
    ...text
      .replace(/\n$/, "")
      .split("\n")
      .flatMap((line) => Draw.hanging(line, columns))
  ]

// ---- drawing

const sizeOf = (tty: Tty.Tty): Draw.Size => ({ columns: tty.columns(), rows: tty.rows() })

const hintLines = ({ state, talk }: Screen, columns: number): ReadonlyArray<string> => {
  const { command } = talk.state
  const text = command === undefined ? state.hint : `running ${command.line}; Esc ends it`
  return text === "" ? [] : [state.theme.accent(fit(oneLine(text, columns), columns))]
}

const statusLine = ({ mode, remote, state, talk }: Screen, columns: number): string => {
  const { branch, lost, theme } = state
  const facts = { ...talk.state, directory: Talk.directory(talk), branch, lost, server: remote?.url, mode }
  return theme.style.dim(Draw.statusLine(talk.state.view, facts, columns, homedir()))
}

/** The rows under the permanent lines, and the cursor in them. */
const pictureOf = (screen: Screen, at: Draw.Size, now: number): Frame.Picture => {
  const { choosing, dialogs, input, narrowed, state, talk } = screen
  const { columns, rows } = at
  const dialog = dialogs.draws()
  const list = choosing.lines(at, state.theme)
  const answer = dialog === undefined ? undefined : dialogs.entry(dialog, columns)
  const entry = list === undefined ? (answer ?? input.draw(columns)) : { lines: list, cursor: { row: 0, column: 0 } }
  const asked = dialog === undefined || list !== undefined ? [] : dialogs.lines(dialog, at)
  const below = [...hintLines(screen, columns), statusLine(screen, columns)]
  const work = Draw.workLines(talk.state.view, now, at, state.theme, {
    shown: state.shown,
    stopping: talk.state.stopping,
    asks: dialog !== undefined
  })
  const fixed = asked.length + entry.lines.length + below.length
  const above = Draw.lastLines(work, Math.max(0, rows - fixed - 2))
  const lines = Draw.lastLines([...above, "", ...asked, ...entry.lines, ...below], Math.max(1, rows - 1))
  const row = lines.length - below.length - entry.lines.length + entry.cursor.row
  return {
    lines: narrowed(lines, columns),
    cursor: { row: Math.max(0, Math.min(row, lines.length - 1)), column: entry.cursor.column }
  }
}

const draw = (screen: Screen): void => {
  const { choosing, dialogs, state, tty } = screen
  const at = sizeOf(tty())
  const tooLong = choosing.isOpen() ? [] : dialogs.tooLong(at)
  const kept = [...state.kept.splice(0).flatMap((lines) => lines(at.columns)), ...tooLong]
  const [frame, bytes] = Frame.next(state.frame, kept, pictureOf(screen, at, Date.now()), at.columns)
  state.frame = frame
  if (bytes !== "") tty().write(bytes)
}

const clear = ({ state, tty }: Pick<Screen, "state" | "tty">, last = ""): void => {
  tty().write(Frame.erased(state.frame, tty().columns()) + last)
  state.frame = Frame.empty
}

/** Draws what changed, forever. */
const drawing = (screen: Screen, dirty: Queue.Dequeue<void>, typing: Queue.Dequeue<void>) =>
  Effect.forever(
    Effect.gen(function* () {
      yield* Queue.take(dirty)
      yield* screen.tty().whenWritten
      const started = performance.now()
      draw(screen)
      const pause = Math.max(pace.least, pace.times * (performance.now() - started))
      yield* Effect.raceFirst(Effect.sleep(pause), Queue.take(typing))
    })
  )

// ---- what happens beside keys

const ticks = ({ changed, dialogs, state, talk }: Screen) =>
  Effect.sync(() => {
    const isRunning = talk.state.view.activity !== undefined
    // An activity may have changed the branch.
    if (state.wasRunning && !isRunning) state.branch = branchOf(Talk.directory(talk))
    state.wasRunning = isRunning
    if (isRunning || dialogs.current() !== undefined) changed()
  })

/** Follows the questions of the server, and the servers of tools. */
const watch = Effect.fnUntraced(function* ({ changed, options, remote, state, talk }: Screen) {
  if (remote !== undefined) {
    const working = () => (talk.state.view.running.size > 0 ? talk.state.session?.id : undefined)
    const send = (decided: Effect.Effect<void, unknown, Talk.Services>) => void talk.act(decided)
    yield* Effect.forkScoped(watchServer({ server: remote, asks: options.asks, working, send }))
  }
  const mcp = yield* Effect.serviceOption(Mcp)
  if (Option.isNone(mcp)) return
  const changes = Stream.runForEach(mcp.value.changes, (all) =>
    Effect.sync(() => {
      state.lost = all.filter((server) => server.state === "failed").map(({ name }) => name)
      changed()
    })
  )
  yield* Effect.forkScoped(changes)
})

export const run = (options: Options) => Effect.scoped(opened(options))

/** Opens the terminal, the editors and the session's talk; nothing is drawn yet. */
const make = Effect.fnUntraced(function* (options: Options, changed: () => void, tty: () => Tty.Tty) {
  const { asks, directory } = options
  const state = initial(directory)
  const keep = (lines: Lines) => {
    state.kept.push(lines)
    changed()
  }
  /** Tells a person who looks at another window (SC-542). */
  const tell = (text: string) => {
    if (state.away && options.notifies) tty().write(Tty.notification(oneLine(text, 120)))
  }
  const size = () => sizeOf(tty())
  const editor = () => Input.make({ theme: state.theme, size, changed })
  const input = editor()
  const talk: Talk.Talk = yield* Talk.make({
    ...options,
    fork: yield* FiberSet.makeRuntime<Talk.Services>(),
    changed,
    keep: (block) => keep((columns) => Draw.blockLines(block, columns, state.theme, state.shown)),
    begins: ({ id, title }) =>
      keep((columns) => ["", state.theme.style.strong(fit(`${title ?? "session"}  ${id}`, columns))]),
    settled: () => tell(`${Talk.title(talk)} is done`),
    refused: (text) => {
      if (input.editor.getText() === "") input.editor.setText(text)
    }
  })
  const dialogs = Dialogs.make({
    asks,
    questions: () => talk.state.questions.values(),
    input: editor(),
    size,
    theme: () => state.theme,
    appears: () => tell(`${Talk.title(talk)} waits for your answer`),
    answer: (questions, next) => Talk.answer(talk, questions, next),
    dismiss: (questions) => Talk.dismiss(talk, questions)
  })
  const screen: Screen = {
    options,
    talk,
    tty,
    input,
    dialogs,
    choosing: Dialogs.makeChoosing(talk),
    narrowed: Draw.makeNarrowing(),
    remote: yield* Remote,
    mode: RunMode.inWords(yield* RunMode.CurrentRunMode),
    state,
    changed
  }
  return { screen, keep }
})

/** What the commands of the screen work with. */
const deskOf = (
  { choosing, input, options, talk }: Screen,
  keep: (lines: Lines) => void,
  leave: Effect.Effect<void>
) => {
  const print = (text: string) => keep(printed(text))
  return {
    session: () => talk.state.session,
    directory: options.directory,
    print,
    keys,
    note: talk.note,
    choose: choosing.choose,
    edit: (text) => input.editor.setText(text),
    show: (session, found) => Talk.show(talk, session, {}, () => (found === undefined ? undefined : print(found))),
    prefer: (next) => Talk.prefer(talk, next),
    /** What a verb writes becomes lines of the screen, together. */
    verb: (words) => Words.gathered(options.verb(words), (text) => (text.trim() === "" ? undefined : print(text))),
    leave
  } satisfies Commands.Desk
}

/** The keys that change the picture. */
const picturesKeys = ({ state, talk }: Screen, keep: (lines: Lines) => void): ReadonlyArray<Editing.Binding> => [
  [
    "ctrl+o",
    () => {
      const { lastCall } = talk.state.view
      if (lastCall !== undefined) keep((columns) => Draw.unfolded(lastCall, columns, state.theme))
    }
  ],
  ["ctrl+t", () => void (state.shown = { ...state.shown, thinking: !state.shown.thinking })],
  ["ctrl+l", () => void (state.frame = { ...state.frame, columns: 0 })]
]

/** Passes keys and pastes to the open list, else to the question, else to the editor. */
const onTyped = ({ choosing, dialogs, state }: Screen, editing: Editing.Editing, typed: Tty.Typed): void => {
  switch (typed.type) {
    case "resize":
      return
    case "background":
      state.theme = themeOf(process.env, typed.background)
      return
    case "focus":
      state.away = !typed.inFront
      return
    case "end":
      return editing.end()
    case "paste": {
      if (choosing.isOpen()) return
      const dialog = dialogs.answerable()
      if (dialog !== undefined && dialogs.onPaste(dialog, typed.text)) return
      // A permission takes no paste: the pasted text goes to the editor, for the next prompt.
      if (dialog === undefined) dialogs.elsewhere()
      return editing.onPaste(typed.text)
    }
    case "key": {
      if (choosing.isOpen()) return choosing.onKey(typed.data)
      const dialog = dialogs.answerable()
      if (dialog !== undefined) return dialogs.onKey(dialog, typed.data, typed.burst)
      dialogs.elsewhere()
      return editing.onKey(typed.data)
    }
  }
}

/** Shows the session that was asked for, or how to begin. */
const begin = Effect.fnUntraced(function* (
  { changed, input, options, state, talk }: Screen,
  keep: (lines: Lines) => void
) {
  talk.act(Effect.map(options.recalled, (all) => all.toReversed().forEach((text) => input.editor.addToHistory(text))))
  if (options.session !== undefined) yield* Talk.show(talk, options.session, options.preferred)
  else {
    keep((columns) => Draw.welcome(options.offered, columns).map(state.theme.style.dim))
    Talk.announce(talk)
  }
  Talk.measure(talk)
  changed()
})

const opened = Effect.fn("Screen.run")(function* (options: Options) {
  const done = yield* Deferred.make<void, CommandEnded>()
  const [dirty, typing] = [yield* Queue.sliding<void>(1), yield* Queue.sliding<void>(1)]
  const changed = () => void Queue.unsafeOffer(dirty, undefined)
  const { keep, screen } = yield* make(options, changed, () => tty)
  const { state, talk } = screen

  let isLeaving = false
  const leave = (code?: number) =>
    Effect.suspend(() => {
      if (isLeaving) return Effect.void
      isLeaving = true
      const end =
        code === undefined ? Deferred.succeed(done, undefined) : Deferred.fail(done, new CommandEnded({ code }))
      return Effect.asVoid(Effect.all([Talk.leave(talk), Effect.sync(options.asks.close), end]))
    })
  const editing = yield* Editing.make({
    desk: deskOf(screen, keep, leave()),
    talk,
    input: screen.input,
    recalled: options.recalled,
    hint: {
      get: () => state.hint,
      set: (text) => void (state.hint = text)
    },
    outside: (run) => {
      clear(screen)
      return tty.without(run)
    },
    shows: picturesKeys(screen, keep),
    end: leave(129)
  })

  const tty = yield* Tty.open((typed) => {
    changed()
    Queue.unsafeOffer(typing, undefined)
    onTyped(screen, editing, typed)
  })

  options.asks.watch(changed)
  const signal = yield* Signal.first
  yield* Effect.forkScoped(Effect.flatMap(signal, (name) => leave({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[name])))
  const drawer = yield* Effect.forkScoped(
    Effect.catchAllCause(drawing(screen, dirty, typing), (cause) => Deferred.failCause(done, cause))
  )
  yield* Effect.forkScoped(Effect.forever(Effect.delay(ticks(screen), tick)))
  yield* Talk.listen(talk)
  yield* watch(screen)
  editing.restore(options.left)
  yield* begin(screen, keep)
  const close = Effect.sync(() => {
    draw(screen)
    clear(screen, talk.state.session === undefined ? "" : `${Talk.title(talk)}: daybook -c goes on with it\r\n`)
  })
  // The drawer ends first: it would draw the rows again after they are removed.
  yield* Effect.ensuring(Deferred.await(done), Effect.zipRight(Fiber.interrupt(drawer), close))
})
