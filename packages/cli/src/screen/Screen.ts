/**
 * The session screen: one session at a time, an editor below it. Everything that happens is a change of one state, which is
 * drawn at most every few milliseconds. Spec: specs/screen.md.
 *
 *   keys ───────┐                  ┌─> editor, questions, lists
 *   log, deltas ┼─> state (here) ──┤
 *   asks ───────┘                  └─> frame ─> terminal
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { matchesKey } from "@mariozechner/pi-tui/dist/keys.js"
import { Cause, Deferred, Effect, Fiber, FiberSet, Option, Queue, Stream } from "effect"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { Sessions } from "@daybook/core/session/Sessions"
import { Identifiers, type SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import { titleOfPrompt } from "@daybook/log/domain/Title"
import { draft } from "@daybook/log/events/SessionEvents"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { Mcp } from "@daybook/mcp/Mcp"
import { questionChange } from "@daybook/transcript/QuestionEvents"
import { Remote } from "../host/Remote.ts"
import { failureOfCause } from "../render/Failure.ts"
import { oneLine } from "../render/Plain.ts"
import { visible } from "../render/Visible.ts"
import { CommandEnded } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import * as Breadcrumb from "../terminal/Breadcrumb.ts"
import { Output } from "../terminal/Output.ts"
import * as Ask from "./Ask.ts"
import type { Asks, Pending } from "./Asks.ts"
import { branchOf } from "./Branch.ts"
import * as Commands from "./Commands.ts"
import * as Draft from "./Draft.ts"
import * as Draw from "./Draw.ts"
import { follow, type Past } from "./Following.ts"
import * as Frame from "./Frame.ts"
import * as HostCommand from "./HostCommand.ts"
import * as Input from "./Input.ts"
import { themeOf } from "./Theme.ts"
import * as Tty from "./Tty.ts"
import * as View from "./View.ts"

export interface Options {
  readonly directory: string
  /** The session to show first; undefined for a new one. */
  readonly session: Session | undefined
  /** The session that an empty Enter goes on with, while none is shown. */
  readonly offered: Session | undefined
  readonly preferred: Preferred
  /** The text in the editor. */
  readonly text: string
  readonly asks: Asks
  /** Earlier prompts, the newest first. */
  readonly recalled: Effect.Effect<ReadonlyArray<string>>
  /** Runs a verb of the command line. */
  readonly verb: (words: ReadonlyArray<string>) => Effect.Effect<void, unknown, Output>
}

type Preferred = Pick<Parameters<Commands.Desk["prefer"]>[0], "agent" | "model">

type Services = Commands.Services | Identifiers

/** A list that is open. */
interface Choosing {
  list: Ask.List
  preview: ReadonlyArray<string>
  previewOf: string | undefined
  readonly load: Commands.Choosing["preview"]
  readonly done: (choice: Ask.Choice | undefined) => void
}

/** The shortest time between two drawings, and how many times longer than a drawing took. */
const pace = { least: 33, times: 12 }

/** How long a second Esc or Ctrl-C counts as the second, in milliseconds. */
const twice = 2_000

const tick = 200

export const run = (options: Options) => Effect.scoped(opened(options))

const opened = Effect.fn("Screen.run")(function* (options: Options) {
  const { asks, directory } = options
  const sessions = yield* Sessions
  const log = yield* EventLog
  const resolver = yield* ModelResolver
  const remote = yield* Remote
  const fork = yield* FiberSet.makeRuntime<Services>()
  const done = yield* Deferred.make<void, CommandEnded>()
  const dirty = yield* Queue.sliding<void>(1)
  const changed = () => void Queue.unsafeOffer(dirty, undefined)

  const s = {
    session: undefined as Session | undefined,
    offered: options.offered,
    preferred: options.preferred,
    view: View.empty,
    // Complete lines that are not drawn yet, at the width of the drawing.
    kept: [] as Array<(columns: number) => ReadonlyArray<string>>,
    frame: Frame.empty,
    shown: { thinking: true, results: false } satisfies Draw.Shown as Draw.Shown,
    window: 0,
    branch: branchOf(directory),
    lost: [] as ReadonlyArray<string>,
    mode: { type: "keys" } as Ask.Mode,
    questions: new Map<string, Ask.Questions>(),
    choosing: undefined as Choosing | undefined,
    dialog: undefined as unknown,
    guard: { at: Number.POSITIVE_INFINITY, lastKey: 0 },
    hint: "",
    stopping: false,
    leaving: false,
    last: { escape: 0, interrupt: 0 },
    delivery: "steer" as "steer" | "queue",
    following: undefined as Fiber.RuntimeFiber<void, unknown> | undefined,
    command: undefined as Fiber.RuntimeFiber<void, unknown> | undefined
  }
  let theme = themeOf(process.env, Tty.likelyBackground(process.env))
  const drafts = Draft.make(directory)

  const keep = (lines: (columns: number) => ReadonlyArray<string>) => {
    s.kept.push(lines)
    changed()
  }
  const keepBlock = (block: View.Block) => keep((columns) => Draw.blockLines(block, columns, theme, s.shown))
  const note = (text: string, bad = false) => keepBlock({ type: "note", text, bad })
  const print = (text: string) => keep(() => ["", ...text.replace(/\n$/, "").split("\n")])

  /** Runs an effect in the background; a failure is a note. */
  const act = <A, E>(effect: Effect.Effect<A, E, Services>) =>
    fork(
      Effect.asVoid(effect).pipe(
        Effect.catchAllCause((cause) =>
          Effect.sync(() => {
            if (Cause.isInterruptedOnly(cause)) return
            note(failureOfCause(cause).sentence ?? "that failed", true)
          })
        ),
        Effect.ensuring(Effect.sync(changed))
      )
    )

  // ---- the session

  const refresh = (sessionID: SessionID) =>
    act(
      Effect.gen(function* () {
        const session = yield* sessions.get(sessionID)
        if (s.session?.id === sessionID) s.session = session
      })
    )

  /** Finds the model's window. A server's models are not known here. */
  const measure = () => {
    if (remote !== undefined) return
    const ref = s.view.model ?? s.session?.model ?? s.preferred.model
    act(
      Effect.ignore(
        Effect.map(resolver.resolve(ref), ({ info }) => {
          s.window = info.contextTokens
          if (s.view.model === undefined) s.view = { ...s.view, model: info.ref }
        })
      )
    )
  }

  const askQuestions = (sessionID: SessionID) =>
    act(
      Effect.map(sessions.questions(sessionID), (open) => {
        const keys = new Set(open.map(({ callID }) => `${sessionID} ${callID}`))
        for (const key of s.questions.keys()) {
          if (key.startsWith(`${sessionID} `) && !keys.has(key)) s.questions.delete(key)
        }
        for (const pending of open) {
          const key = `${sessionID} ${pending.callID}`
          if (!s.questions.has(key)) s.questions.set(key, { pending, answers: [] })
        }
      })
    )

  const onEvent = (event: SessionEvent | LiveEvent) => {
    const before = s.view
    const [view, blocks] = View.step(s.view, event)
    s.view = view
    blocks.forEach(keepBlock)
    if (view.activity === undefined) s.stopping = false
    if (before.model !== view.model) measure()
    switch (event.type) {
      case "session.next.activity.settled":
        s.branch = branchOf(directory)
        refresh(event.sessionID)
        break
      case "session.next.step.ended":
      case "session.next.renamed":
        refresh(event.sessionID)
        break
      default:
        if (questionChange(event) !== undefined && "seq" in event) askQuestions(event.sessionID)
    }
    changed()
  }

  const onPast = (session: Session) => ({ events, isCut, soFar, waiting }: Past) => {
    if (isCut) note(`earlier messages: daybook show ${session.id}`)
    s.view = { ...View.empty, model: session.model, agent: session.agent, title: session.title }
    for (const event of events) {
      const [view, blocks] = View.step(s.view, event)
      s.view = view
      blocks.forEach(keepBlock)
    }
    s.view = {
      ...View.withSoFar(s.view, soFar),
      waiting: new Map(waiting.map(({ delivery, id, prompt }) => [id, { text: prompt.text, delivery }])),
      ...(session.activity?.state === "running" ? {} : { activity: undefined, running: new Map(), texts: new Map() })
    }
    measure()
    askQuestions(session.id)
    changed()
  }

  /** Shows a session, or an empty screen for a new one. */
  const show = (session: Session | undefined): Effect.Effect<void> =>
    Effect.gen(function* () {
      if (s.following !== undefined) yield* Fiber.interruptFork(s.following)
      s.session = session
      s.offered = undefined
      s.view = View.empty
      s.questions.clear()
      if (session === undefined) {
        note("a new session begins with your next prompt")
        return measure()
      }
      s.preferred = {}
      keep((columns) => ["", theme.style.strong(oneLine(`${session.title ?? "session"}  ${session.id}`, columns - 1))])
      s.following = act(
        Effect.gen(function* () {
          if (remote === undefined) yield* Effect.ignore(sessions.settle(session.id))
          const now = yield* sessions.get(session.id)
          s.session = now
          yield* follow(session.id, { past: onPast(now), event: onEvent })
        })
      )
    })

  const create = Effect.fnUntraced(function* (text: string) {
    const { agent, model } = s.preferred
    const session = yield* sessions.create({ location: { directory }, agent, model, title: titleOfPrompt(text), provisional: true })
    yield* show(session)
    return session
  })

  const prompt = (text: string, delivery: "steer" | "queue") =>
    Effect.gen(function* () {
      const session = s.session ?? (yield* create(text))
      const id = yield* (yield* Identifiers).message
      yield* sessions.prompt({ id, sessionID: session.id, prompt: { text }, delivery })
      yield* Breadcrumb.leave({ directory, sessionID: session.id })
    }).pipe(
      Effect.tapErrorCause(() =>
        Effect.sync(() => {
          if (input.editor.getText() === "") input.editor.setText(text)
        })
      )
    )

  /** Runs a command of the person; with one `!` the model sees it. */
  const shell = (line: string) => {
    const isPrivate = line.startsWith("!!")
    const command = line.replace(/^!!?/, "").trim()
    if (command === "") return
    s.hint = `running ${oneLine(command, 40)}; Esc ends it`
    s.command = act(
      Effect.gen(function* () {
        const output = yield* HostCommand.run(command, directory)
        if (isPrivate || remote !== undefined) keepBlock({ type: "shell", command, output })
        if (isPrivate) return
        if (remote !== undefined) return note("a server's model is not shown what runs here")
        const session = s.session ?? (yield* create(command))
        const messageID = yield* (yield* Identifiers).message
        const callID = `call_${messageID.slice(4)}`
        yield* log.append(session.id, [
          draft("session.next.shell.started", { messageID, callID, command }),
          draft("session.next.shell.ended", { callID, output })
        ])
      }).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            s.command = undefined
            s.hint = ""
          })
        )
      )
    )
  }

  const submit = (text: string, delivery: "steer" | "queue") => {
    drafts.keep("", undefined)
    if (text.trim() === "") return onEmpty()
    input.editor.addToHistory(text)
    if (text.startsWith("!")) return shell(text)
    const found = text.startsWith("/") ? Commands.find(text) : undefined
    if (found !== undefined) return void act(found.command.run(desk, found.rest))
    const meant = /^\/\S+$/.test(text.trim()) ? Commands.misspelt(text) : ""
    if (meant !== "") {
      note(`there is no command "${oneLine(text, 40)}"${meant}`, true)
      return input.editor.setText(text)
    }
    void act(prompt(text, delivery))
  }

  /** Enter without a text: goes on with the offered session, or runs what waits. */
  const onEmpty = () => {
    const { offered, session } = s
    if (session === undefined && offered !== undefined) return void act(show(offered))
    if (session !== undefined && s.view.activity === undefined && s.view.waiting.size > 0) {
      void act(sessions.resume(session.id))
    }
  }

  const desk: Commands.Desk = {
    session: () => s.session,
    directory,
    print,
    note,
    choose: (choosing) =>
      Effect.async((resume) => {
        s.choosing = {
          list: { title: choosing.title, choices: choosing.choices, filter: "", at: 0 },
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
    show,
    prefer: (next) => {
      s.preferred = { ...s.preferred, ...next }
      s.view = { ...s.view, ...next }
      measure()
    },
    verb: (words) => Effect.provideService(options.verb(words), Output, written),
    leave: Effect.suspend(() => leave(undefined))
  }

  /** What a verb writes becomes lines of the screen. */
  const line = (text: string) => Effect.sync(() => print(visible(text)))
  const written = Output.of({
    terminal: true,
    write: line,
    draw: (_, picture) => Effect.sync(() => print(picture)),
    note: line,
    error: line,
    print: line,
    complete: Effect.void
  })

  const leave = (code: number | undefined): Effect.Effect<void> =>
    Effect.gen(function* () {
      if (s.leaving) return
      s.leaving = true
      s.stopping = s.view.activity !== undefined
      s.hint = s.stopping ? "stopping" : ""
      changed()
      const session = s.session
      const isOwn = session !== undefined && remote === undefined && (yield* sessions.active).includes(session.id)
      if (isOwn) yield* Effect.ignore(sessions.interrupt(session.id))
      asks.close()
      yield* code === undefined ? Deferred.succeed(done, undefined) : Deferred.fail(done, new CommandEnded({ code }))
    })

  // ---- drawing

  const tty = yield* Tty.open((typed) => onTyped(typed))
  const size = (): Draw.Size => ({ columns: tty.columns(), rows: tty.rows() })
  const makeInput = () => Input.make({ theme, size, changed })
  const input = makeInput()
  /** Answers have an editor of their own: a half-written prompt stays. */
  const answers = makeInput()

  type Dialog =
    | { readonly type: "permission"; readonly pending: Pending }
    | { readonly type: "question"; readonly questions: Ask.Questions }

  const dialogOf = (): Dialog | undefined => {
    const [pending] = asks.pending()
    if (pending !== undefined) return { type: "permission", pending }
    const [questions] = s.questions.values()
    return questions === undefined ? undefined : { type: "question", questions }
  }

  /** Notices that another question is shown: its moment begins when it is drawn. */
  const watchDialog = (dialog: Dialog | undefined) => {
    const shown = dialog === undefined ? undefined : dialog.type === "permission" ? dialog.pending : dialog.questions
    if (shown === s.dialog) return
    s.dialog = shown
    s.mode = { type: "keys" }
    s.guard = { ...s.guard, at: Date.now() }
    answers.editor.setText("")
  }

  const isReady = () => Ask.listens(s.guard, Date.now())

  const dialogLines = (dialog: Dialog, at: Draw.Size, ready: boolean) =>
    dialog.type === "permission"
      ? Ask.permissionLines(dialog.pending.request, s.mode, at, theme, ready)
      : Ask.questionLines(dialog.questions, at, theme, ready)

  const takesText = (dialog: Dialog | undefined) =>
    dialog?.type === "question" || (dialog?.type === "permission" && Ask.takesText(s.mode))

  /** The rows under the permanent lines, and the cursor in them. */
  const pictureOf = (at: Draw.Size, now: number): Frame.Picture => {
    const { columns, rows } = at
    const dialog = dialogOf()
    watchDialog(dialog)
    const ready = isReady()
    const below = s.choosing !== undefined
      ? { lines: [...Ask.listLines(s.choosing.list, s.choosing.preview, at, theme)], cursor: undefined }
      : dialog !== undefined && ready && !takesText(dialog)
        ? { lines: [], cursor: undefined }
        : (dialog !== undefined && ready ? answers : input).draw(columns)
    const facts = { session: s.session, directory, branch: s.branch, window: s.window, lost: s.lost, server: remote?.url }
    const status = theme.style.dim(Draw.statusLine(s.view, facts, columns, homedir()))
    const hint = s.hint === "" ? [] : [theme.accent(oneLine(s.hint, columns - 1))]
    const asked = dialog === undefined || s.choosing !== undefined ? [] : dialogLines(dialog, at, ready)
    const bottom = [...asked, ...below.lines, ...hint, status]
    const room = Math.max(0, rows - bottom.length - 1)
    const work = Draw.workLines(s.view, now, at, theme, { shown: s.shown, stopping: s.stopping })
    const lines = Draw.lastLines([...Draw.lastLines(work, room), "", ...bottom], Math.max(1, rows - 1))
    const row = lines.length - below.lines.length - hint.length - 1 + (below.cursor?.row ?? 0)
    return {
      lines: lines.map((each) => Draw.narrowed(each, columns)),
      cursor: { row: Math.max(0, Math.min(row, lines.length - 1)), column: below.cursor?.column ?? 0 }
    }
  }

  const draw = () => {
    const at = size()
    const kept = s.kept.splice(0).flatMap((lines) => lines(at.columns))
    const [frame, bytes] = Frame.next(s.frame, kept, pictureOf(at, Date.now()), at.columns)
    s.frame = frame
    if (bytes !== "") tty.write(bytes)
  }

  const drawing = Effect.gen(function* () {
    yield* Queue.take(dirty)
    yield* tty.whenWritten
    const started = performance.now()
    draw()
    yield* Effect.sleep(Math.max(pace.least, pace.times * (performance.now() - started)))
  })

  const loadPreview = () => {
    const { choosing } = s
    const choice = choosing === undefined ? undefined : Ask.chosen(choosing.list)
    if (choosing?.load === undefined || choice === undefined || choice.value === choosing.previewOf) return
    choosing.previewOf = choice.value
    choosing.preview = []
    const load = choosing.load(choice)
    act(
      Effect.map(load, (lines) => {
        if (choosing.previewOf === choice.value) choosing.preview = lines
      })
    )
  }

  // ---- keys

  const onTyped = (typed: Tty.Typed) => {
    changed()
    switch (typed.type) {
      case "resize":
        return
      case "background":
        theme = themeOf(process.env, typed.background)
        return
      case "end":
        return void act(leave(129))
      case "paste":
        return onPaste(typed.text)
      case "key":
        return onKey(typed.data, typed.burst)
    }
  }

  const onPaste = (text: string) => {
    const { choosing } = s
    if (choosing !== undefined) return
    const dialog = dialogOf()
    const isAnswer = dialog !== undefined && isReady()
    if (isAnswer && !takesText(dialog)) return
    if (!isAnswer) s.guard.lastKey = Date.now()
    ;(isAnswer ? answers : input).editor.handleInput(Input.pasted(text))
    keepDraft()
  }

  const keepDraft = () => drafts.keep(input.editor.getExpandedText(), s.session?.id)

  const onKey = (key: string, burst: boolean) => {
    if (s.choosing !== undefined) return onListKey(s.choosing, key)
    const dialog = dialogOf()
    if (dialog !== undefined && dialog === dialogNow(dialog) && isReady()) return onDialogKey(dialog, key, burst)
    s.guard.lastKey = Date.now()
    onEditorKey(key)
    keepDraft()
  }

  /** The question, if it is the one that is drawn: a newer one takes no key yet. */
  const dialogNow = (dialog: Dialog): Dialog | undefined =>
    (dialog.type === "permission" ? dialog.pending : dialog.questions) === s.dialog ? dialog : undefined

  const onListKey = (choosing: Choosing, key: string) => {
    if (matchesKey(key, "enter")) return choosing.done(Ask.chosen(choosing.list))
    if (matchesKey(key, "escape") || matchesKey(key, "ctrl+c")) return choosing.done(undefined)
    choosing.list = Ask.onListKey(choosing.list, key)
    loadPreview()
  }

  const onDialogKey = (dialog: Dialog, key: string, burst: boolean) => {
    if (takesText(dialog) && !matchesKey(key, "escape") && !matchesKey(key, "ctrl+c")) {
      return answers.editor.handleInput(key)
    }
    if (dialog.type === "question") return dismiss(dialog.questions)
    if (takesText(dialog)) {
      s.mode = { type: "keys" }
      return
    }
    const { pending } = dialog
    const isInterrupt = matchesKey(key, "ctrl+c")
    // Keys that come together were not typed to answer.
    if (burst && !isInterrupt) return
    const pages = Ask.pagesOf(pending.request, size(), theme).length
    take(pending, Ask.onKey(pending.request, s.mode, isInterrupt ? "\u001b" : key, pages))
  }

  const take = (pending: Pending, reply: Ask.Reply | undefined) => {
    if (reply?.type === "mode") s.mode = reply.mode
    if (reply?.type === "answer") pending.answer(reply.answer)
  }

  const dismiss = ({ pending }: Ask.Questions) => {
    s.questions.delete(`${pending.sessionID} ${pending.callID}`)
    act(sessions.dismissQuestion(pending))
  }

  answers.editor.onSubmit = (text) => {
    const dialog = dialogOf()
    if (dialog?.type === "permission") return take(dialog.pending, Ask.onText(s.mode, text))
    if (dialog?.type !== "question") return
    const { pending } = dialog.questions
    const key = `${pending.sessionID} ${pending.callID}`
    const next = Ask.answered(dialog.questions, text)
    if ("pending" in next) return void s.questions.set(key, next)
    s.questions.delete(key)
    act(sessions.answer({ ...pending, answers: next }))
  }

  const onInterruptKey = () => {
    const now = Date.now()
    if (input.editor.getText() !== "") {
      input.editor.setText("")
      s.hint = ""
      return
    }
    if (now - s.last.interrupt < twice) return void act(leave(undefined))
    s.last.interrupt = now
    s.hint = "Ctrl-C again leaves"
    act(
      Effect.delay(
        Effect.sync(() => {
          if (s.hint === "Ctrl-C again leaves") s.hint = ""
        }),
        twice
      )
    )
  }

  const onEscape = () => {
    if (s.command !== undefined) return void act(Fiber.interrupt(s.command))
    const { activity } = s.view
    const { session } = s
    if (session === undefined || (activity === undefined && !s.stopping)) return
    const now = Date.now()
    const isSecond = s.stopping || now - s.last.escape < twice
    s.last.escape = now
    s.stopping = true
    const only = isSecond || activity === undefined ? undefined : { activityID: activity.id }
    act(sessions.interrupt(session.id, only))
  }

  const takeBack = () => {
    const last = [...s.view.waiting].at(-1)
    const { session } = s
    if (last === undefined || session === undefined) return
    const [id, { text }] = last
    act(
      Effect.map(sessions.withdraw(session.id, id), () => {
        const typed = input.editor.getExpandedText()
        input.editor.setText(typed === "" ? text : `${text}\n${typed}`)
      })
    )
  }

  const recall = () =>
    act(
      Effect.gen(function* () {
        const all = yield* options.recalled
        const choice = yield* desk.choose({
          title: "earlier prompts",
          choices: all.map((text, at) => ({ value: String(at), label: text }))
        })
        if (choice !== undefined) input.editor.setText(all[Number(choice.value)] ?? "")
      })
    )

  /** Opens the text in the person's editor. */
  const editOutside = () => {
    const folder = mkdtempSync(join(tmpdir(), "daybook-"))
    const path = join(folder, "prompt.md")
    try {
      writeFileSync(path, input.editor.getExpandedText(), { mode: 0o600 })
      tty.write(Frame.erased(s.frame, tty.columns()))
      s.frame = Frame.empty
      const program = process.env["VISUAL"] || process.env["EDITOR"] || "vi"
      const { error, status } = tty.without(() =>
        spawnSync("/bin/sh", ["-c", `${program} "$1"`, "sh", path], { stdio: "inherit" })
      )
      if (error !== undefined || status !== 0) return note(`${program} did not end well: the text is unchanged`, true)
      input.editor.setText(readFileSync(path, "utf8").replace(/\n$/, ""))
    } finally {
      rmSync(folder, { recursive: true, force: true })
      changed()
    }
  }

  const suspend = () => {
    tty.write(Frame.erased(s.frame, tty.columns()))
    s.frame = Frame.empty
    tty.without(() => process.kill(process.pid, "SIGTSTP"))
  }

  const toggleAgent = () => {
    const now = s.view.agent ?? s.session?.agent ?? s.preferred.agent ?? "build"
    act(Commands.switchAgent(desk, now === "plan" ? "build" : "plan"))
  }

  const unfold = () => {
    const { lastCall } = s.view
    if (lastCall !== undefined) keep((columns) => Draw.unfolded(lastCall, columns, theme))
  }

  const bindings: ReadonlyArray<readonly [key: Parameters<typeof matchesKey>[1], run: () => void]> = [
    ["ctrl+c", onInterruptKey],
    ["alt+up", takeBack],
    ["ctrl+r", () => void recall()],
    ["ctrl+g", editOutside],
    ["ctrl+z", suspend],
    ["ctrl+o", unfold],
    ["ctrl+t", () => (s.shown = { ...s.shown, thinking: !s.shown.thinking })],
    ["shift+tab", toggleAgent],
    ["ctrl+l", () => (s.frame = { ...s.frame, columns: 0 })]
  ]

  const onEditorKey = (key: string) => {
    const { editor } = input
    const bound = bindings.find(([name]) => matchesKey(key, name))
    if (bound !== undefined) return bound[1]()
    if (matchesKey(key, "escape") && !editor.isShowingAutocomplete()) return onEscape()
    if (matchesKey(key, "ctrl+d") && editor.getText() === "") return void act(leave(undefined))
    if (matchesKey(key, "alt+enter")) {
      s.delivery = "queue"
      editor.handleInput("\r")
      s.delivery = "steer"
      return
    }
    editor.handleInput(key)
  }

  input.editor.onSubmit = (text) => submit(text, s.delivery)
  input.editor.setAutocompleteProvider(
    Input.completion(
      () => directory,
      Commands.commands.map(({ about, name, words }) => ({ name, about: words === undefined ? about : `${words}  ${about}` }))
    )
  )

  // ---- the beginning and the end

  asks.watch(changed)
  const signal = yield* Signal.first
  yield* Effect.forkScoped(Effect.flatMap(signal, (name) => leave({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[name])))
  yield* Effect.forkScoped(
    Effect.catchAllCause(Effect.forever(drawing), (cause) => Deferred.failCause(done, cause))
  )
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.delay(
        Effect.sync(() => {
          if (s.view.activity !== undefined || dialogOf() !== undefined) changed()
        }),
        tick
      )
    )
  )
  if (remote === undefined) {
    yield* log.listen((events) =>
      Effect.sync(() => {
        for (const event of events) {
          if (event.sessionID !== s.session?.id && questionChange(event) !== undefined) askQuestions(event.sessionID)
        }
      })
    )
  }
  const mcp = yield* Effect.serviceOption(Mcp)
  if (Option.isSome(mcp)) {
    yield* Effect.forkScoped(
      Stream.runForEach(mcp.value.changes, (all) =>
        Effect.sync(() => {
          s.lost = all.filter(({ state }) => state === "failed").map(({ name }) => name)
          changed()
        })
      )
    )
  }
  act(
    Effect.map(options.recalled, (all) => {
      for (const text of all.toReversed()) input.editor.addToHistory(text)
    })
  )
  if (options.text !== "") input.editor.setText(options.text)
  if (options.session !== undefined) yield* show(options.session)
  else {
    const { offered } = options
    keep((columns) => welcome(offered, columns).map((each) => theme.style.dim(each)))
    measure()
  }
  changed()
  yield* Effect.ensuring(
    Deferred.await(done),
    Effect.sync(() => {
      draw()
      const { session } = s
      const last = session === undefined ? "" : `${oneLine(session.title ?? session.id, 60)}: daybook goes on with it\r\n`
      tty.write(Frame.erased(s.frame, tty.columns()) + last)
      s.frame = Frame.empty
    })
  )
})

const welcome = (offered: Session | undefined, columns: number): ReadonlyArray<string> => [
  "daybook: /help lists commands and keys",
  ...(offered === undefined
    ? []
    : [`Enter goes on with "${oneLine(offered.title ?? offered.id, Math.max(10, columns - 40))}"; a prompt begins a new session`])
]
