/** What the prompt's editor does with keys, pastes and Enter. Spec: SC-505..SC-512, SC-540 in specs/screen.md. */
import { matchesKey } from "@mariozechner/pi-tui/dist/keys.js"
import { Effect, FiberSet, type Scope } from "effect"
import * as Clipboard from "./Clipboard.ts"
import * as Commands from "./Commands.ts"
import * as Draft from "./Draft.ts"
import * as HostCommand from "./HostCommand.ts"
import * as Input from "./Input.ts"
import * as Pictures from "./Pictures.ts"
import * as Talk from "./Talk.ts"
import type * as View from "./View.ts"

export interface Options {
  readonly desk: Commands.Desk
  readonly talk: Talk.Talk
  readonly input: Input.Input
  /** Earlier prompts, the newest first. */
  readonly recalled: Effect.Effect<ReadonlyArray<string>>
  /** The line above the status line; empty if there is none. */
  readonly hint: { readonly get: () => string; readonly set: (text: string) => void }
  /** Runs something that has the terminal for itself. */
  readonly outside: <A>(run: () => A) => A
  /** The keys that change what is drawn. */
  readonly shows: ReadonlyArray<Binding>
  /** The terminal has ended. */
  readonly end: Effect.Effect<void>
}

export interface Editing {
  readonly onKey: (key: string) => void
  readonly onPaste: (text: string) => void
  /** Puts what an earlier screen left into the editor. */
  readonly restore: (left: Draft.SavedDraft) => void
  /** The terminal has ended. */
  readonly end: () => void
}

export type Binding = readonly [key: Parameters<typeof matchesKey>[1], run: () => void]

/** How long a second key counts as the second, in milliseconds. */
const twice = 2_000

const leaves = "Ctrl-C again leaves"

/** Sends a text: a prompt, a command of the screen, or a command of the shell. */
const submit = (
  { desk, input: { editor }, talk }: Options,
  chips: ReadonlySet<string>,
  text: string,
  delivery: View.WaitingPrompt["delivery"]
) => {
  if (text.trim() === "") return Talk.goOn(talk)
  editor.addToHistory(text)
  if (text.startsWith("!")) {
    const command = text.replace(/^!!?/, "").trim()
    return command === "" ? undefined : Talk.shell(talk, command, text.startsWith("!!"))
  }
  const found = Commands.find(text.trim() === "?" ? "/help" : text)
  if (found !== undefined) return void talk.act(found.command.run(desk, found.rest))
  if (!text.startsWith("/")) return void Talk.prompt(talk, text, delivery, chips)
  const sent = Effect.map(Commands.refusal(text, Talk.directory(talk)), (why) => {
    if (why === undefined) return void Talk.prompt(talk, text, delivery, chips)
    talk.note(why, true)
    if (editor.getText() === "") editor.setText(text)
  })
  return void talk.act(sent)
}

/** Completes commands, their words, and paths. */
const complete = Effect.fnUntraced(function* ({ desk, input, talk }: Options) {
  const answer = yield* FiberSet.makeRuntimePromise<Talk.Services>()
  const completed = Commands.commands.map(({ about, name, values, words }) => ({
    name,
    about: words === undefined ? about : `${words}  ${about}`,
    ...(values === undefined ? {} : { values: () => answer(Effect.orElseSucceed(values(desk), () => [])) })
  }))
  input.editor.setAutocompleteProvider(Input.completion(() => Talk.directory(talk), completed))
})

/** The keys that end something: Ctrl-C clears the text, then leaves; Esc stops what runs, then goes back. */
const makeEnding = ({ desk, hint, input, talk }: Options) => {
  let [interruptedAt, escapedAt] = [0, 0]
  return {
    interrupt: () => {
      const now = Date.now()
      if (input.editor.getText() !== "") return input.editor.setText("")
      if (now - interruptedAt < twice) return void talk.act(desk.leave)
      interruptedAt = now
      hint.set(leaves)
      const forget = Effect.sync(() => (hint.get() === leaves ? hint.set("") : undefined))
      talk.act(Effect.delay(forget, twice))
    },
    /** Stops what runs; twice, with nothing running and no text, it goes back to an earlier prompt. */
    escape: () => {
      const isIdle = !Talk.stop(talk, Date.now())
      if (!isIdle || input.editor.getText() !== "" || talk.state.session === undefined) return
      const now = Date.now()
      if (now - escapedAt < twice) void talk.act(Commands.goBack(desk))
      escapedAt = now
    }
  }
}

const takeBack = ({ input, talk }: Options) =>
  Talk.takeBack(talk, (text) => {
    const typed = input.editor.getExpandedText()
    input.editor.setText(typed === "" ? text : `${text}\n${typed}`)
  })

const recall = Effect.fnUntraced(function* ({ desk, input, recalled }: Options) {
  const all = yield* recalled
  const choices = all.map((text, at) => ({ value: String(at), label: text }))
  const choice = yield* desk.choose({ title: "earlier prompts", choices })
  if (choice !== undefined) input.editor.setText(all[Number(choice.value)] ?? "")
})

const editOutside = ({ input, outside, talk }: Options) => {
  const edited = HostCommand.edit(input.editor.getExpandedText(), outside)
  if (edited._tag === "Left") return talk.note(edited.left, true)
  input.editor.setText(edited.right)
}

const toggleAgent = ({ desk, talk }: Options) => {
  const { preferred, session, view } = talk.state
  const now = view.agent ?? session?.agent ?? preferred.agent
  talk.act(Commands.switchAgent(desk, now === "plan" ? "build" : "plan"))
}

export const make = (options: Options): Effect.Effect<Editing, never, Scope.Scope | Talk.Services> =>
  Effect.gen(function* () {
    const { desk, input, outside, talk } = options
    const { editor } = input
    const drafts = Draft.make(desk.directory)
    /** The pictures that were pasted or dropped. */
    const chips = new Set<string>()
    /** The folder of pictures that were in the clipboard; removed at the end. */
    const pictures = Pictures.folder()
    yield* Effect.addFinalizer(() => Effect.sync(pictures.remove))
    yield* complete(options)

    const keepDraft = () => drafts.keep(editor.getExpandedText(), talk.state.session?.id)
    const ending = makeEnding(options)
    let delivery: View.WaitingPrompt["delivery"] = "steer"
    editor.onSubmit = (text) => {
      drafts.keep("", undefined)
      submit(options, chips, text, delivery)
    }

    const queue = () => {
      delivery = "queue"
      editor.handleInput("\r")
      delivery = "steer"
    }
    const onPaste = (text: string) => {
      editor.handleInput(Input.pasted(Pictures.withChip(text, chips)))
      keepDraft()
    }
    const pastePicture = () => talk.act(Effect.map(Clipboard.picture, (bytes) => onPaste(pictures.keep(bytes))))

    const bindings: ReadonlyArray<Binding> = [
      ["ctrl+c", ending.interrupt],
      ["alt+enter", queue],
      ["alt+up", () => takeBack(options)],
      ["ctrl+r", () => talk.act(recall(options))],
      ["ctrl+g", () => editOutside(options)],
      ["ctrl+v", pastePicture],
      ["ctrl+z", () => outside(() => process.kill(process.pid, "SIGTSTP"))],
      ["shift+tab", () => toggleAgent(options)],
      ...options.shows
    ]
    const take = (key: string) => {
      const bound = bindings.find(([name]) => matchesKey(key, name))
      if (bound !== undefined) return bound[1]()
      if (matchesKey(key, "escape") && !editor.isShowingAutocomplete()) return ending.escape()
      if (matchesKey(key, "ctrl+d") && editor.getText() === "") return void talk.act(desk.leave)
      editor.handleInput(key)
    }
    return {
      onPaste,
      onKey: (key) => {
        take(key)
        keepDraft()
      },
      restore: ({ taken, text }) => {
        if (text !== "") editor.setText(text)
        keepDraft()
        taken()
      },
      end: () => void talk.act(options.end)
    }
  })
