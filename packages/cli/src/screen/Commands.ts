/** The commands of the screen. Printing ones are the command line's verbs, for this session. Spec: SC-530..SC-532. */
import { Chunk, Effect, Option, Stream } from "effect"
import { Agents } from "@daybook/core/agent/Agents"
import type { ModelResolver } from "@daybook/core/model/ModelResolver"
import { Templates } from "@daybook/core/prompt/Templates"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Message, Session } from "@daybook/log/domain/Message"
import { modelText, type ModelRef } from "@daybook/log/domain/Values"
import { EventLog } from "@daybook/log/log/EventLog"
import { allItems } from "@daybook/log/store/Pages"
import { Mcp } from "@daybook/mcp/Mcp"
import { ago, columns, oneLine, visible } from "../render/Plain.ts"
import { treeRows, type TreeRow } from "../commands/tree.ts"
import { fileLines, undoNote } from "../commands/undo.ts"
import { UsageError } from "../support/Errors.ts"
import { didYouMean } from "../support/Nearest.ts"
import type { Output } from "../terminal/Output.ts"
import { answerText, lastMessages, placeOf } from "../host/HistoryPlace.ts"
import { noModel, readModel } from "../host/Runtime.ts"
import type { Choice } from "./Ask.ts"

/** What a list is for. */
export interface ChoiceRequest {
  readonly title: string
  readonly choices: ReadonlyArray<Choice>
  /** The choice that the bar is on first; default: the first one. */
  readonly at?: number
  readonly preview?: (choice: Choice) => Effect.Effect<ReadonlyArray<string>, unknown, Services>
}

export interface Desk {
  /** The session; undefined before the first prompt of a new one. */
  readonly session: () => Session | undefined
  readonly directory: string
  readonly print: (text: string) => void
  /** The keys, as help lists them. */
  readonly keys: string
  readonly note: (text: string) => void
  readonly choose: (choosing: ChoiceRequest) => Effect.Effect<Choice | undefined>
  readonly edit: (text: string) => void
  /** Shows a session, or the beginning of a new one; `found` is printed below its end. */
  readonly show: (session: Session | undefined, found?: string) => Effect.Effect<void>
  /** The model or agent of the next session, while there is none. */
  readonly prefer: (next: { readonly model?: ModelRef; readonly agent?: string }) => void
  /** Runs a verb of the command line, and prints what it writes. */
  readonly verb: (words: ReadonlyArray<string>) => Effect.Effect<void, unknown>
  readonly leave: Effect.Effect<void>
}

export type Services = Agents | EventLog | ModelResolver | Output | Sessions

export interface SlashCommand {
  readonly name: string
  readonly words?: string
  readonly about: string
  /** What its first word can be, for completion. */
  readonly values?: (desk: Desk) => Effect.Effect<ReadonlyArray<Choice>, unknown, Services>
  readonly run: (desk: Desk, rest: string) => Effect.Effect<void, unknown, Services>
}

const opened = (desk: Desk): Effect.Effect<Session, UsageError> => {
  const session = desk.session()
  return session === undefined
    ? Effect.fail(new UsageError({ message: "this session begins with its first prompt" }))
    : Effect.succeed(session)
}

/** A verb for this session, with the words that were typed. */
const verbOf =
  (name: string, place: "before" | "after" | "none" = "before") =>
  (desk: Desk, rest: string) =>
    Effect.gen(function* () {
      const typed = rest.split(/\s+/).filter((word) => word !== "")
      if (place === "none") return yield* desk.verb([name, ...typed])
      const { id } = yield* opened(desk)
      yield* desk.verb(place === "before" ? [name, id, ...typed] : [name, ...typed, id])
    })

/** Sessions of this folder first, then the others. */
const listed = Effect.fnUntraced(function* (directory: string) {
  const sessions = yield* Sessions
  const [here, all] = [yield* sessions.list({ directory, limit: 200 }), yield* sessions.list({ limit: 200 })]
  const own = here.items.filter(({ parentID }) => parentID === undefined)
  const known = new Set(own.map(({ id }) => id))
  return [...own, ...all.items.filter(({ id, parentID }) => parentID === undefined && !known.has(id))]
})

const previewed = 8

const previewOf = (message: Message): ReadonlyArray<string> => {
  if (message.type === "user") return [`▌ ${oneLine(message.text, 200)}`]
  const text = answerText(message, 200)
  return text === "" ? [] : [text]
}

const preview = (sessionID: SessionID) =>
  Effect.map(
    lastMessages(sessionID, (found) => found.length >= previewed),
    (messages) => messages.flatMap(previewOf).slice(-previewed)
  )

const choiceOf = (session: Session): Choice => ({
  value: session.id,
  label: session.title ?? session.id,
  about: `${ago(session.updatedAt, Date.now())}  ${session.location.directory}`
})

const sessionsCommand = Effect.fnUntraced(function* (desk: Desk, rest: string) {
  const all = yield* listed(desk.directory)
  const words = rest.trim()
  const exact = all.filter(({ id, title }) => words !== "" && (id === words || title === words))
  const found = exact.length > 0 ? exact : all.filter(({ id }) => words !== "" && id.startsWith(words))
  const [only] = found
  if (only !== undefined && found.length === 1) return yield* desk.show(only)
  const chosen = yield* desk.choose({
    title: "sessions",
    choices: (found.length > 0 ? found : all).map(choiceOf),
    preview: ({ value }) =>
      Effect.flatMap(Effect.fromNullable(all.find(({ id }) => id === value)), ({ id }) => preview(id))
  })
  const session = all.find(({ id }) => id === chosen?.value)
  if (session !== undefined) yield* desk.show(session)
})

/** The whole text of the event that a search found. */
const textAt = Effect.fnUntraced(function* (sessionID: SessionID, seq: number) {
  const { events } = yield* (yield* EventLog).read({ sessionID, after: seq - 1, limit: 1 })
  const [event] = events
  if (event === undefined) return ""
  const { data } = event
  if ("prompt" in data) return data.prompt.text
  if ("text" in data) return data.text
  if (!("content" in data)) return ""
  return data.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
})

/** Lists the hits of all sessions. Shows the session of the chosen hit, and its whole text. */
const searchCommand = Effect.fnUntraced(function* (desk: Desk, rest: string) {
  const query = rest.trim()
  if (query === "") return yield* new UsageError({ message: "say what to search: /search WORDS" })
  const { hits } = yield* Effect.promise(() => import("../commands/search.ts"))
  const found = yield* hits(query, desk.directory)
  if (found.length === 0) return desk.note(`nothing found for ${oneLine(query)}`)
  const choices = found.map(({ hit, session: { title } }, at) => ({
    value: String(at),
    lead: `${oneLine(hit.tool ?? hit.role, 9).padEnd(9)} ${ago(hit.created, Date.now()).padEnd(14)} `,
    label: hit.snippet,
    about: title ?? ""
  }))
  const textOf = ({ value }: Choice) =>
    Effect.flatMap(Effect.fromNullable(found[Number(value)]), ({ hit, session }) =>
      Effect.map(textAt(session.sessionID, hit.seq), (text) => ({
        hit,
        session,
        text: text === "" ? hit.snippet : text
      }))
    )
  const choice = yield* desk.choose({
    title: "found",
    choices,
    preview: (choice) => Effect.map(textOf(choice), ({ text }) => text.split("\n").slice(0, 40))
  })
  if (choice === undefined) return
  const { hit, session, text } = yield* textOf(choice)
  const who = oneLine(hit.tool ?? hit.role, 40)
  const head = `found (${who}, ${ago(hit.created, Date.now())}):`
  yield* desk.show(yield* (yield* Sessions).get(session.sessionID), `${head}\n${visible(text)}\n`)
})

const modelCommand = Effect.fnUntraced(function* (desk: Desk, rest: string) {
  const words = rest.trim()
  const chosen = words === "" ? yield* chooseModel(desk) : words
  if (chosen === undefined) return
  const model = yield* readModel(chosen)
  const session = desk.session()
  if (session !== undefined) return yield* (yield* Sessions).switchModel(session.id, model)
  desk.prefer({ model })
  desk.note(`the model is ${modelText(model)}`)
})

const models = Effect.gen(function* () {
  const { list } = yield* Effect.promise(() => import("../host/ModelList.ts"))
  const { models } = yield* list(false)
  return models.map(({ model, name }): Choice => ({ value: model, label: model, about: name }))
})

const chooseModel = Effect.fnUntraced(function* (desk: Desk) {
  const choices = yield* models
  if (choices.every(({ value }) => value.startsWith("offline/"))) desk.note(`${noModel}; then start daybook again`)
  const chosen = yield* desk.choose({ title: "models", choices })
  return chosen?.value
})

const agentCommand = Effect.fnUntraced(function* (desk: Desk, rest: string) {
  const words = rest.trim()
  const chosen = words === "" ? yield* chooseAgent(desk) : words
  if (chosen !== undefined) yield* switchAgent(desk, chosen)
})

/** Changes the agent of this session, or of the next one. */
export const switchAgent = Effect.fnUntraced(function* (desk: Desk, name: string) {
  const session = desk.session()
  if (session !== undefined) return yield* (yield* Sessions).switchAgent(session.id, name)
  const agent = yield* (yield* Agents).get(name, { directory: desk.directory })
  desk.prefer({ agent: agent.name })
  desk.note(`the agent is ${agent.name}`)
})

const agentsOf = ({ directory }: Desk) =>
  Effect.map(
    Effect.flatMap(Agents, (agents) => agents.list({ directory })),
    (all) =>
      all
        .filter(({ mode }) => mode !== "subagent")
        .map(({ description: about, name }): Choice => ({
          value: name,
          label: name,
          ...(about === undefined ? {} : { about })
        }))
  )

const chooseAgent = Effect.fnUntraced(function* (desk: Desk) {
  const chosen = yield* desk.choose({ title: "agents", choices: yield* agentsOf(desk) })
  return chosen?.value
})

const undoCommand = (redo: boolean) => (desk: Desk, rest: string) =>
  Effect.gen(function* () {
    const { id: sessionID } = yield* opened(desk)
    const sessions = yield* Sessions
    const account = yield* (redo ? sessions.redo : sessions.undo)({ sessionID, force: rest.trim() === "--force" })
    desk.print(fileLines(account) + undoNote({ redo, place: undefined }, account))
    if (account.undone && account.prompt !== undefined) desk.edit(account.prompt.text)
  })

const nodesOf = (sessionID: SessionID) =>
  Effect.flatMap(Sessions, ({ tree }) =>
    Stream.runCollect(allItems((cursor: number | undefined) => tree({ sessionID, limit: 500, cursor })))
  )

const speakers: Readonly<Record<string, string>> = { user: "you", assistant: "model" }

const nodeChoice = ({ head, node }: TreeRow): Choice => {
  const { id, label, leaf, onPath, text, type } = node
  const mark = leaf === true ? "●" : onPath ? "*" : "o"
  const name = label === undefined ? "" : `[${label}] `
  return { value: id, lead: `${head}${mark} ${(speakers[type] ?? type).padEnd(5)} `, label: `${name}${text}` }
}

/** Walks the tree: history goes on from the chosen message; a prompt is put into the editor. */
const treeCommand = (prompts: boolean) => (desk: Desk) =>
  Effect.gen(function* () {
    const { id: sessionID } = yield* opened(desk)
    const all = [...treeRows(Chunk.toReadonlyArray(yield* nodesOf(sessionID)))]
    const rows = all.filter(({ node: { type } }) => !prompts || type === "user")
    const chosen = yield* desk.choose({
      title: prompts ? "go back before your prompt" : "go on after (● is here, o was left)",
      choices: rows.map(nodeChoice),
      at: Math.max(
        0,
        rows.findLastIndex(({ node }) => (prompts ? node.onPath : node.leaf === true))
      )
    })
    if (chosen === undefined) return
    const { leafID, moved, prompt } = yield* (yield* Sessions).branch({ sessionID, messageID: chosen.value })
    if (!moved) desk.note(`the session goes on ${yield* placeOf(sessionID, leafID)} already`)
    if (prompt !== undefined) desk.edit(prompt.text)
  })

/** Lists earlier prompts; history goes on before the chosen one. */
export const goBack = treeCommand(true)

const renameCommand = Effect.fnUntraced(function* (desk: Desk, rest: string) {
  const { id } = yield* opened(desk)
  const title = rest.trim()
  if (title === "") return yield* new UsageError({ message: "say the title: /rename TITLE" })
  yield* (yield* Sessions).rename(id, title)
  desk.note(`the session is called "${oneLine(title)}"`)
})

/** The state of each MCP server. Over a server there are none here. */
const mcpCommand = Effect.fnUntraced(function* (desk: Desk) {
  const mcp = yield* Effect.serviceOption(Mcp)
  const all = Option.isNone(mcp) ? [] : yield* mcp.value.status
  desk.print(
    all.length === 0
      ? "no MCP server is configured here\n"
      : columns(
          all.map(({ details, name, state, tools }) => [name, state, `${tools} tools`, oneLine(details ?? "", 200)])
        )
  )
})

/** The keys of the screen. */
export const keys = `  Enter            sends; while it works, the prompt joins the work
  Alt-Enter        queues the prompt until the work has ended
  Ctrl-J, \\ Enter  a new line
  Alt-Up           takes the last waiting prompt back
  Esc              stops the activity; twice, the whole run; twice while idle, /branch
  Ctrl-C           clears the text; twice, leaves
  Up, Ctrl-R       earlier prompts; search in those of all sessions
  Ctrl-G, Ctrl-V   the text in $EDITOR; a picture of the clipboard
  Ctrl-O, Ctrl-T   the last result in full; thinking shown or folded
  Shift-Tab        from plan to work and back
  !COMMAND         runs it, for the model to see; !!COMMAND without
  @FILE            shows the model a file
`

const help = (desk: Desk) =>
  Effect.sync(() => {
    const rows = commands.map(({ about, name, words = "" }) => `  ${`/${name} ${words}`.padEnd(24)} ${about}\n`)
    desk.print(`${rows.join("")}${desk.keys === "" ? "" : `\n${desk.keys}`}`)
  })

export const commands: ReadonlyArray<SlashCommand> = [
  { name: "help", about: "commands and keys", run: help },
  { name: "new", about: "begin a new session here", run: (desk) => desk.show(undefined) },
  { name: "sessions", words: "[NAME]", about: "go to another session", run: sessionsCommand },
  { name: "model", words: "[P/M]", about: "use another model from now on", values: () => models, run: modelCommand },
  { name: "agent", words: "[NAME]", about: "use another agent from now on", values: agentsOf, run: agentCommand },
  { name: "undo", words: "[--force]", about: "take back the last prompt, files included", run: undoCommand(false) },
  { name: "redo", words: "[--force]", about: "take back the last undo", run: undoCommand(true) },
  { name: "branch", about: "go back before an earlier prompt, and send another", run: goBack },
  { name: "tree", about: "continue after any message", run: treeCommand(false) },
  {
    name: "compact",
    about: "summarize the conversation so far",
    run: (desk) => Effect.flatMap(Effect.all([Sessions, opened(desk)]), ([sessions, { id }]) => sessions.compact(id))
  },
  { name: "context", about: "what the model would be shown now", run: verbOf("context") },
  { name: "budget", words: "[--cost USD]", about: "what the session spent and may spend", run: verbOf("budget") },
  { name: "search", words: "WORDS", about: "find what was said in all sessions, and go there", run: searchCommand },
  {
    name: "export",
    words: "--out FILE.md",
    about: "write the session to a file",
    run: verbOf("export")
  },
  { name: "rename", words: "TITLE", about: "give the session a title", run: renameCommand },
  { name: "permissions", words: "[audit]", about: "saved approvals", run: verbOf("permissions", "none") },
  { name: "mcp", about: "the MCP servers of this session", run: mcpCommand },
  { name: "quit", about: "leave; daybook continues it", run: (desk) => desk.leave }
]

/** Runs a line that begins with a slash; undefined if no command has this name: then it is a template's. */
export const find = (line: string): { readonly command: SlashCommand; readonly rest: string } | undefined => {
  const [, name = "", rest = ""] = /^\/(\S*)\s*(.*)$/s.exec(line) ?? []
  const command = commands.find((each) => each.name === name)
  return command === undefined ? undefined : { command, rest }
}

/** Commands of other agents, each with what Daybook has in its place. */
export const elsewhere: Readonly<Record<string, string>> = {
  clear: "/new",
  reset: "/new",
  exit: "/quit",
  q: "/quit",
  resume: "/sessions",
  continue: "/sessions",
  session: "/sessions",
  cost: "/budget",
  usage: "/budget",
  tokens: "/context",
  status: "the line at the bottom; /context and /budget say more",
  rewind: "/undo or /branch",
  fork: "/branch, or daybook fork in a shell",
  models: "/model",
  agents: "/agent",
  plan: "/agent plan, or Shift-Tab",
  name: "/rename",
  copy: "/export --format markdown",
  share: "/export --format html",
  history: "Ctrl-R",
  hotkeys: "/help",
  editor: "Ctrl-G",
  details: "Ctrl-O",
  thinking: "Ctrl-T",
  diff: "!git diff",
  init: "a file AGENTS.md, which the model reads",
  memory: "a file AGENTS.md, which the model reads",
  login: "daybook setup in a shell, which keeps a key",
  logout: "daybook setup in a shell, which keeps a key",
  config: "daybook doctor in a shell, which names the configuration file",
  settings: "daybook doctor in a shell, which names the configuration file",
  doctor: "daybook doctor in a shell"
}

/** What is said of a line of one word that is probably a command misspelt, or another agent's; undefined for a prompt. */
export const misspelt = (line: string): string | undefined => {
  const [, name] = /^\/(\S+)$/.exec(line.trim()) ?? []
  if (name === undefined) return undefined
  if (Object.hasOwn(elsewhere, name)) return `here, /${name} is ${elsewhere[name]}`
  const meant = didYouMean(
    name,
    commands.map((each) => each.name)
  )
  return meant === "" ? undefined : `there is no command "/${oneLine(name, 40)}"${meant}`
}

/** As `misspelt`; the name of a template is a prompt. */
export const refusal = Effect.fnUntraced(function* (line: string, directory: string) {
  const why = misspelt(line)
  const templates = yield* Effect.serviceOption(Templates)
  if (why === undefined || Option.isNone(templates)) return why
  const known = yield* templates.value.list({ directory })
  return known.some(({ name }) => `/${name}` === line.trim()) ? undefined : why
})
