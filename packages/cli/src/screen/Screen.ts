/**
 * The session screen: the session's lines, and below them an editor and a status line. Everything that happens is a change of
 * state, which is drawn at most every few milliseconds. Spec: specs/screen.md.
 *
 *   keys ───────┐          ┌─> editor, questions, lists
 *   log, deltas ┼─> state ─┤
 *   asks ───────┘          └─> frame ─> terminal
 */
import { homedir } from "node:os"
import { matchesKey } from "@mariozechner/pi-tui/dist/keys.js"
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
import * as Ask from "./Ask.ts"
import type { Asks, Pending } from "./Asks.ts"
import * as RunMode from "../arguments/RunMode.ts"
import { branchOf } from "./Branch.ts"
import * as Clipboard from "./Clipboard.ts"
import * as Commands from "./Commands.ts"
import * as Draft from "./Draft.ts"
import * as Draw from "./Draw.ts"
import * as Frame from "./Frame.ts"
import * as HostCommand from "./HostCommand.ts"
import * as Input from "./Input.ts"
import * as Pictures from "./Pictures.ts"
import * as ServedAsks from "./ServedAsks.ts"
import * as Talk from "./Talk.ts"
import { themeOf } from "./Theme.ts"
import * as Tty from "./Tty.ts"
import type * as View from "./View.ts"
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
  readonly left: Draft.SavedDraft
  readonly asks: Asks
  /** Earlier prompts, the newest first. */
  readonly recalled: Effect.Effect<ReadonlyArray<string>>
  /** Whether the screen notifies a terminal in the background (SC-542). */
  readonly notifies: boolean
  /** Runs a verb of the command line. */
  readonly verb: (words: ReadonlyArray<string>) => Effect.Effect<void, unknown, Output>
}

interface OpenList {
  list: Ask.List
  preview: ReadonlyArray<string>
  previewOf: string | undefined
  readonly load: Commands.ChoiceRequest["preview"]
  readonly done: (choice: Ask.Choice | undefined) => void
}

/** The shortest time between two drawings, and how many times longer than a drawing took. A key does not wait. */
const pace = { least: 80, times: 30 }

/** How long a second Ctrl-C counts as the second, in milliseconds. */
const twice = 2_000

/** How often what shows the time is drawn, in milliseconds. */
const tick = 200

const leaves = "Ctrl-C again leaves"

export const run = (options: Options) => Effect.scoped(opened(options))

const opened = Effect.fn("Screen.run")(function* (options: Options) {
  const { asks, directory } = options
  const remote = yield* Remote
  const mode = RunMode.inWords(yield* RunMode.CurrentRunMode)
  const fork = yield* FiberSet.makeRuntime<Talk.Services>()
  const done = yield* Deferred.make<void, CommandEnded>()
  const dirty = yield* Queue.sliding<void>(1)
  const typing = yield* Queue.sliding<void>(1)
  const changed = () => void Queue.unsafeOffer(dirty, undefined)

  const s = {
    // Complete lines that are not drawn yet, at the width of the drawing.
    kept: [] as Array<(columns: number) => ReadonlyArray<string>>,
    frame: Frame.empty,
    shown: { thinking: true, results: false } as Draw.Details,
    branch: branchOf(directory),
    lost: [] as ReadonlyArray<string>,
    mode: { type: "keys" } as Ask.Mode,
    choosing: undefined as OpenList | undefined,
    /** The question that is drawn. */
    asked: undefined as Pending | Ask.Questions | undefined,
    guard: { at: 0, lastKey: 0 } as Ask.DrawnQuestion,
    /** The question that is written above because it does not fit below. */
    keptAsk: undefined as { readonly subject: unknown; readonly mode: Ask.Mode } | undefined,
    hint: "",
    interruptedAt: 0,
    escapedAt: 0,
    wasRunning: false,
    // The person looks at another window.
    away: false,
    delivery: "steer" as View.WaitingPrompt["delivery"],
    leaving: false
  }
  let theme = themeOf(process.env, Tty.likelyBackground(process.env))
  const drafts = Draft.make(directory)
  const narrowed = Draw.makeNarrowing()

  const keep = (lines: (columns: number) => ReadonlyArray<string>) => {
    s.kept.push(lines)
    changed()
  }
  const print = (text: string) =>
    keep((columns) => [
      "",
      ...text
        .replace(/\n$/, "")
        .split("\n")
        .flatMap((line) => Draw.hanging(line, columns))
    ])

  const talk = yield* Talk.make({
    directory,
    offered: options.offered,
    preferred: options.preferred,
    projects: options.projects,
    fork,
    changed,
    keep: (block) => keep((columns) => Draw.blockLines(block, columns, theme, s.shown)),
    begins: ({ id, title }) =>
      keep((columns) => ["", theme.style.strong(fit(`${title ?? "session"}  ${id}`, columns))]),
    settled: () => tell(`${talk.title()} is done`),
    refused: (text) => {
      if (input.editor.getText() === "") input.editor.setText(text)
    }
  })
  const { act, note, state } = talk

  const submit = (text: string, delivery: View.WaitingPrompt["delivery"]) => {
    drafts.keep("", undefined)
    if (text.trim() === "") return talk.goOn()
    input.editor.addToHistory(text)
    if (text.startsWith("!")) {
      const command = text.replace(/^!!?/, "").trim()
      return command === "" ? undefined : talk.shell(command, text.startsWith("!!"))
    }
    const found = Commands.find(text.trim() === "?" ? "/help" : text)
    if (found !== undefined) return void act(found.command.run(desk, found.rest))
    if (!text.startsWith("/")) return void talk.prompt(text, delivery, chips)
    return void act(
      Effect.map(Commands.refusal(text, talk.directory()), (why) => {
        if (why === undefined) return void talk.prompt(text, delivery, chips)
        note(why, true)
        if (input.editor.getText() === "") input.editor.setText(text)
      })
    )
  }

  /** Runs a verb; what it writes becomes lines of the screen, together. */
  const verb = (words: ReadonlyArray<string>) =>
    Words.gathered(options.verb(words), (text) => (text.trim() === "" ? undefined : print(text)))

  const leave = (code: number | undefined): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (s.leaving) return Effect.void
      s.leaving = true
      const end =
        code === undefined ? Deferred.succeed(done, undefined) : Deferred.fail(done, new CommandEnded({ code }))
      return talk.leave.pipe(Effect.zipRight(Effect.sync(asks.close)), Effect.zipRight(end), Effect.asVoid)
    })

  const desk: Commands.Desk = {
    session: () => state.session,
    directory,
    print,
    keys: Commands.keys,
    note,
    choose: (choosing) =>
      Effect.async((resume) => {
        s.choosing = {
          list: { title: choosing.title, choices: choosing.choices, filter: "", at: choosing.at ?? 0 },
          preview: [],
          previewOf: undefined,
          load: choosing.preview,
          done: (choice) => {
            s.choosing = undefined
            resume(Effect.succeed(choice))
          }
        }
        loadPreview()
        changed()
      }),
    edit: (text) => input.editor.setText(text),
    show: (session, found) => talk.show(session, {}, () => (found === undefined ? undefined : print(found))),
    prefer: talk.prefer,
    verb,
    leave: leave(undefined)
  }

  // ---- drawing

  const tty = yield* Tty.open((typed) => onTyped(typed))
  const size = (): Draw.Size => ({ columns: tty.columns(), rows: tty.rows() })
  const input = Input.make({ theme, size, changed })
  /** Answers have an editor of their own: a half-written prompt stays. */
  const answers = Input.make({ theme, size, changed })

  const dialogOf = (): Ask.Dialog | undefined => {
    const [pending] = asks.pending()
    if (pending !== undefined) return { type: "permission", pending }
    const [questions] = state.questions.values()
    return questions === undefined ? undefined : { type: "question", questions }
  }

  /** Tells a person who looks at another window (SC-542). */
  const tell = (text: string) => {
    if (s.away && options.notifies) tty.write(Tty.notification(oneLine(text, 120)))
  }

  /** Notices that another question is drawn: only later keys can be its answer. */
  const drawnNow = (dialog: Ask.Dialog | undefined) => {
    const subject = Ask.subjectOf(dialog)
    if (subject === s.asked) return
    s.asked = subject
    if (subject !== undefined) tell(`${talk.title()} waits for your answer`)
    s.mode = { type: "keys" }
    s.guard = { ...s.guard, at: Date.now() }
    answers.editor.setText("")
  }

  const isReady = () => Ask.listens(s.guard, Date.now())

  const takesText = (dialog: Ask.Dialog | undefined) =>
    dialog?.type === "question" || (dialog?.type === "permission" && Ask.takesText(s.mode))

  const dialogLines = (dialog: Ask.Dialog, at: Draw.Size, ready: boolean) =>
    dialog.type === "permission"
      ? Ask.permissionLines(dialog.pending.request, s.mode, at, theme, ready)
      : Ask.questionLines(dialog.questions, at, theme, ready)

  /** The list, the editor, or the answer's editor. */
  const entryOf = (dialog: Ask.Dialog | undefined, at: Draw.Size, ready: boolean): ReturnType<Input.Input["draw"]> => {
    const none = { row: 0, column: 0 }
    const { choosing } = s
    if (choosing !== undefined)
      return { lines: Ask.listLines(choosing.list, choosing.preview, at, theme), cursor: none }
    if (dialog === undefined || !ready) return input.draw(at.columns)
    return takesText(dialog) ? answers.draw(at.columns) : { lines: [], cursor: none }
  }

  const hintOf = (columns: number): ReadonlyArray<string> => {
    const { command } = state
    const text = command === undefined ? s.hint : `running ${command.line}; Esc ends it`
    return text === "" ? [] : [theme.accent(fit(oneLine(text, columns), columns))]
  }

  /** A question that does not fit is written above, whole, and only how to answer it stays below. */
  const fitsBelow = (question: ReadonlyArray<string>, { rows }: Draw.Size) => question.length + 3 < rows

  const keepLong = (at: Draw.Size) => {
    const dialog = dialogOf()
    if (dialog === undefined || s.choosing !== undefined) return
    drawnNow(dialog)
    const question = dialogLines(dialog, at, false)
    const isKept = s.keptAsk?.subject === s.asked && s.keptAsk?.mode === s.mode
    if (fitsBelow(question, at) || isKept) return
    s.keptAsk = { subject: s.asked, mode: s.mode }
    s.kept.push(() => question.slice(0, -1))
  }

  /** The rows under the permanent lines, and the cursor in them. */
  const pictureOf = (at: Draw.Size, now: number): Frame.Picture => {
    const { columns, rows } = at
    const dialog = dialogOf()
    drawnNow(dialog)
    const ready = isReady()
    const entry = entryOf(dialog, at, ready)
    const facts = { ...state, directory: talk.directory(), branch: s.branch, lost: s.lost, server: remote?.url, mode }
    const below = [...hintOf(columns), theme.style.dim(Draw.statusLine(state.view, facts, columns, homedir()))]
    const question = dialog === undefined || s.choosing !== undefined ? [] : dialogLines(dialog, at, ready)
    const asked = fitsBelow(question, at) ? question : question.slice(-1)
    const work = Draw.workLines(state.view, now, at, theme, {
      shown: s.shown,
      stopping: state.stopping,
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

  const draw = () => {
    const at = size()
    keepLong(at)
    const kept = s.kept.splice(0).flatMap((lines) => lines(at.columns))
    const [frame, bytes] = Frame.next(s.frame, kept, pictureOf(at, Date.now()), at.columns)
    s.frame = frame
    if (bytes !== "") tty.write(bytes)
  }

  const clear = (last = "") => {
    tty.write(Frame.erased(s.frame, tty.columns()) + last)
    s.frame = Frame.empty
  }

  const drawing = Effect.gen(function* () {
    yield* Queue.take(dirty)
    yield* tty.whenWritten
    const started = performance.now()
    draw()
    const pause = Math.max(pace.least, pace.times * (performance.now() - started))
    yield* Effect.raceFirst(Effect.sleep(pause), Queue.take(typing))
  })

  const loadPreview = () => {
    const { choosing } = s
    const choice = choosing === undefined ? undefined : Ask.chosen(choosing.list)
    if (choosing?.load === undefined || choice === undefined || choice.value === choosing.previewOf) return
    choosing.previewOf = choice.value
    choosing.preview = []
    act(
      Effect.map(choosing.load(choice), (lines) => {
        if (choosing.previewOf === choice.value) choosing.preview = lines
      })
    )
  }

  // ---- keys

  const onTyped = (typed: Tty.Typed) => {
    changed()
    Queue.unsafeOffer(typing, undefined)
    switch (typed.type) {
      case "resize":
        return
      case "background":
        theme = themeOf(process.env, typed.background)
        return
      case "focus":
        s.away = !typed.inFront
        return
      case "end":
        return void act(leave(129))
      case "paste":
        return onPaste(typed.text)
      case "key":
        return onKey(typed.data, typed.burst)
    }
  }

  /** The question that a key can answer now: it is drawn, and the keyboard was silent. */
  const answerable = (): Ask.Dialog | undefined => {
    const dialog = dialogOf()
    return dialog !== undefined && Ask.subjectOf(dialog) === s.asked && isReady() ? dialog : undefined
  }

  /** Notices a key that was typed for something else. */
  const elsewhere = () => {
    s.guard = { ...s.guard, lastKey: Date.now() }
  }

  const keepDraft = () => drafts.keep(input.editor.getExpandedText(), state.session?.id)

  /** The pictures that were pasted or dropped. */
  const chips = new Set<string>()

  /** The folder of pictures that were in the clipboard; removed at the end. */
  const pictures = Pictures.folder()
  yield* Effect.addFinalizer(() => Effect.sync(pictures.remove))

  const pastePicture = () =>
    act(
      Effect.map(Clipboard.picture, (bytes) => {
        input.editor.handleInput(Input.pasted(Pictures.withChip(pictures.keep(bytes), chips)))
        keepDraft()
      })
    )

  const onPaste = (text: string) => {
    if (s.choosing !== undefined) return
    const dialog = answerable()
    if (dialog !== undefined && takesText(dialog)) return answers.editor.handleInput(Input.pasted(text))
    // A permission goes on waiting for its key: what is pasted meanwhile is for the next prompt.
    if (dialog === undefined) elsewhere()
    input.editor.handleInput(Input.pasted(Pictures.withChip(text, chips)))
    keepDraft()
  }

  const onKey = (key: string, burst: boolean) => {
    if (s.choosing !== undefined) return onListKey(s.choosing, key)
    const dialog = answerable()
    if (dialog !== undefined) return onDialogKey(dialog, key, burst)
    elsewhere()
    onEditorKey(key)
    keepDraft()
  }

  const onListKey = (choosing: OpenList, key: string) => {
    if (matchesKey(key, "enter")) return choosing.done(Ask.chosen(choosing.list))
    if (matchesKey(key, "escape") || matchesKey(key, "ctrl+c")) return choosing.done(undefined)
    choosing.list = Ask.onListKey(choosing.list, key)
    loadPreview()
  }

  const onDialogKey = (dialog: Ask.Dialog, key: string, burst: boolean) => {
    const ends = matchesKey(key, "escape") || matchesKey(key, "ctrl+c")
    if (takesText(dialog) && !ends) return answers.editor.handleInput(key)
    if (dialog.type === "question") return talk.dismiss(dialog.questions)
    if (takesText(dialog)) {
      s.mode = { type: "keys" }
      return
    }
    // Keys that come together were not typed to answer.
    if (burst && !ends) return
    const { pending } = dialog
    const pages = Ask.pagesOf(pending.request, size(), theme).length
    take(pending, Ask.onKey(pending.request, s.mode, ends ? "\u001b" : key, pages))
  }

  const take = (pending: Pending, reply: Ask.Reply | undefined) => {
    if (reply?.type === "mode") s.mode = reply.mode
    if (reply?.type === "answer") pending.answer(reply.answer)
  }

  answers.editor.onSubmit = (text) => {
    const dialog = dialogOf()
    if (dialog?.type === "permission") take(dialog.pending, Ask.onText(s.mode, text))
    if (dialog?.type === "question") talk.answer(dialog.questions, Ask.answered(dialog.questions, text))
  }

  const onInterruptKey = () => {
    const now = Date.now()
    if (input.editor.getText() !== "") return input.editor.setText("")
    if (now - s.interruptedAt < twice) return void act(leave(undefined))
    s.interruptedAt = now
    s.hint = leaves
    act(
      Effect.delay(
        Effect.sync(() => (s.hint = s.hint === leaves ? "" : s.hint)),
        twice
      )
    )
  }

  const takeBack = () =>
    talk.takeBack((text) => {
      const typed = input.editor.getExpandedText()
      input.editor.setText(typed === "" ? text : `${text}\n${typed}`)
    })

  const recall = () =>
    act(
      Effect.gen(function* () {
        const all = yield* options.recalled
        const choices = all.map((text, at) => ({ value: String(at), label: text }))
        const choice = yield* desk.choose({ title: "earlier prompts", choices })
        if (choice !== undefined) input.editor.setText(all[Number(choice.value)] ?? "")
      })
    )

  const editOutside = () => {
    clear()
    const edited = HostCommand.edit(input.editor.getExpandedText(), tty.without)
    if (edited._tag === "Left") return note(edited.left, true)
    input.editor.setText(edited.right)
  }

  const suspend = () => {
    clear()
    tty.without(() => process.kill(process.pid, "SIGTSTP"))
  }

  const toggleAgent = () => {
    const now = state.view.agent ?? state.session?.agent ?? state.preferred.agent
    act(Commands.switchAgent(desk, now === "plan" ? "build" : "plan"))
  }

  const unfold = () => {
    const { lastCall } = state.view
    if (lastCall !== undefined) keep((columns) => Draw.unfolded(lastCall, columns, theme))
  }

  const queue = () => {
    s.delivery = "queue"
    input.editor.handleInput("\r")
    s.delivery = "steer"
  }

  const bindings: ReadonlyArray<readonly [key: Parameters<typeof matchesKey>[1], run: () => void]> = [
    ["ctrl+c", onInterruptKey],
    ["alt+enter", queue],
    ["alt+up", takeBack],
    ["ctrl+r", recall],
    ["ctrl+g", editOutside],
    ["ctrl+v", pastePicture],
    ["ctrl+z", suspend],
    ["ctrl+o", unfold],
    ["ctrl+t", () => (s.shown = { ...s.shown, thinking: !s.shown.thinking })],
    ["shift+tab", toggleAgent],
    ["ctrl+l", () => (s.frame = { ...s.frame, columns: 0 })]
  ]

  /** Stops what runs; twice, with nothing running and no text, it goes back to an earlier prompt. */
  const onEscape = () => {
    const isIdle = !talk.stop(Date.now())
    if (!isIdle || input.editor.getText() !== "" || state.session === undefined) return
    const now = Date.now()
    if (now - s.escapedAt < twice) void act(Commands.goBack(desk))
    s.escapedAt = now
  }

  const onEditorKey = (key: string) => {
    const { editor } = input
    const bound = bindings.find(([name]) => matchesKey(key, name))
    if (bound !== undefined) return bound[1]()
    if (matchesKey(key, "escape") && !editor.isShowingAutocomplete()) return onEscape()
    if (matchesKey(key, "ctrl+d") && editor.getText() === "") return void act(leave(undefined))
    editor.handleInput(key)
  }

  input.editor.onSubmit = (text) => submit(text, s.delivery)
  const answer = yield* FiberSet.makeRuntimePromise<Talk.Services>()
  const completed = Commands.commands.map(({ about, name, values, words }) => ({
    name,
    about: words === undefined ? about : `${words}  ${about}`,
    ...(values === undefined ? {} : { values: () => answer(Effect.orElseSucceed(values(desk), () => [])) })
  }))
  input.editor.setAutocompleteProvider(Input.completion(talk.directory, completed))

  // ---- the beginning and the end

  asks.watch(changed)
  const signal = yield* Signal.first
  yield* Effect.forkScoped(Effect.flatMap(signal, (name) => leave({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[name])))
  const drawer = yield* Effect.forkScoped(
    Effect.catchAllCause(Effect.forever(drawing), (cause) => Deferred.failCause(done, cause))
  )
  const ticks = Effect.sync(() => {
    const isRunning = state.view.activity !== undefined
    // An activity may have changed the branch.
    if (s.wasRunning && !isRunning) s.branch = branchOf(talk.directory())
    s.wasRunning = isRunning
    if (isRunning || dialogOf() !== undefined) changed()
  })
  yield* Effect.forkScoped(Effect.forever(Effect.delay(ticks, tick)))
  yield* talk.listen
  if (remote !== undefined) {
    const working = () => (state.view.running.size > 0 ? state.session?.id : undefined)
    yield* Effect.forkScoped(ServedAsks.watch({ server: remote, asks, working, send: (decided) => void act(decided) }))
  }
  const mcp = yield* Effect.serviceOption(Mcp)
  if (Option.isSome(mcp)) {
    const watch = Stream.runForEach(mcp.value.changes, (all) =>
      Effect.sync(() => {
        s.lost = all.filter(({ state }) => state === "failed").map(({ name }) => name)
        changed()
      })
    )
    yield* Effect.forkScoped(watch)
  }
  act(Effect.map(options.recalled, (all) => all.toReversed().forEach((text) => input.editor.addToHistory(text))))
  if (options.left.text !== "") input.editor.setText(options.left.text)
  keepDraft()
  options.left.taken()
  if (options.session !== undefined) yield* talk.show(options.session, options.preferred)
  else {
    keep((columns) => Draw.welcome(options.offered, columns).map(theme.style.dim))
    talk.announce()
  }
  talk.measure()
  changed()
  const close = Effect.sync(() => {
    draw()
    clear(state.session === undefined ? "" : `${talk.title()}: daybook -c goes on with it\r\n`)
  })
  // The drawer ends first: it would draw the rows again after they are removed.
  yield* Effect.ensuring(Deferred.await(done), Effect.zipRight(Fiber.interrupt(drawer), close))
})
