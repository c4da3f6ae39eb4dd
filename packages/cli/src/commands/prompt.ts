/**
 * `daybook prompt`: admits a prompt, runs it, and streams the answer. `daybook continue` prompts the most recent session of this
 * terminal or folder. Spec: CL-4..CL-11, CL-23..CL-26, CL-260..CL-262.
 */
import { Effect, Schema } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import { Identifiers, MessageID } from "@daybook/log/domain/Identifiers"
import { unfinished } from "@daybook/log/domain/Imported"
import type { Session } from "@daybook/log/domain/Message"
import { titleOfPrompt } from "@daybook/log/domain/Title"
import type { ModelRef, OutputFormat, PromptInput } from "@daybook/log/domain/Values"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as PromptWords from "../arguments/PromptWords.ts"
import * as RunMode from "../arguments/RunMode.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { Remote } from "../host/Remote.ts"
import {
  announceModel,
  chosenModel,
  findAgent,
  inMode,
  modelOfProject,
  modeCounts,
  parsedModel,
  readModel,
  resolveModel,
  runFollower,
  told,
  trusting,
  withModels,
  withNewSessions,
  withNoSessions,
  withReader
} from "../host/Runtime.ts"
import { oneLine } from "../render/Plain.ts"
import { sessionTable } from "../render/SessionLine.ts"
import { UsageError } from "../support/Errors.ts"
import * as Breadcrumb from "../terminal/Breadcrumb.ts"
import { Output, writeJson } from "../terminal/Output.ts"
import * as PromptLine from "../terminal/PromptLine.ts"
import * as Question from "../terminal/Question.ts"
import { limits, withLimits } from "./budget.ts"

const promptGiven = {
  words: Flags.many("TEXT"),
  delivery: Flags.choice(
    "delivery",
    ["steer", "queue"],
    "join the running work, or wait until it ends (default: steer)"
  ),
  model: Flags.text("model", "P/M", "use this model, provider/model, from now on"),
  agent: Flags.text("agent", "A", "use this agent from now on"),
  attach: Flags.repeated("attach", "FILE", "a file or folder to attach; may be repeated", (text) =>
    text === "" ? Effect.fail("FILE") : Effect.succeed(text)
  ),
  system: Flags.text("system", "TEXT", "privileged text for this prompt, shown directly before it"),
  tools: Flags.repeated(
    "tools",
    "PATTERN=on|off",
    "tools by name pattern (* is any text) for this prompt; the last match decides; may be repeated",
    PromptWords.parseTool
  ),
  outputSchema: Flags.text(
    "output-schema",
    "FILE",
    "answer as JSON that fits the JSON Schema in FILE; only the value goes to stdout"
  ),
  ...limits,
  stdin: Flags.toggle("stdin", "append what is piped in to the words"),
  noRun: Flags.toggle("no-run", "only admit the prompt; daybook resume runs it"),
  trust: Flags.trust,
  ...RunMode.flags,
  noReasoning: Flags.noReasoning,
  json: Flags.json
}

/** What the options give, read and checked. */
interface Options extends Pick<
  FieldValues<typeof promptGiven>,
  "delivery" | "agent" | "system" | "tools" | "cost" | "tokens" | "noRun" | "noReasoning" | "json"
> {
  readonly text: string
  readonly session: SessionReference.Reference | undefined
  /** The canonical folder. */
  readonly directory: string
  /** Whether `--cwd` names it. */
  readonly inFolder: boolean
  readonly model: ModelRef | undefined
  readonly id: MessageID | undefined
  readonly attach: ReadonlyArray<PromptWords.AttachedPath>
  readonly output: OutputFormat | undefined
}

/** A repeated pattern takes its last position. */
const inOrder = (tools: Options["tools"]): Record<string, boolean> => {
  const last = new Map<string, boolean>()
  for (const [pattern, on] of tools) {
    last.delete(pattern)
    last.set(pattern, on)
  }
  return Object.fromEntries(last)
}

const inputOf = Effect.fn("Command.prompt.input")(function* (
  { attach, output, system, text, tools }: Options,
  directory: string
) {
  const files = yield* Effect.forEach(attach, (given) => PromptWords.attachment(directory, given))
  return {
    text,
    ...(files.length === 0 ? {} : { files }),
    ...(system === undefined ? {} : { system }),
    ...(tools.length === 0 ? {} : { tools: inOrder(tools) }),
    ...(output === undefined ? {} : { output })
  }
})

/** The session to prompt, the input, and how to undo a creation if the prompt is refused. */
interface PromptTarget {
  readonly session: Session
  readonly isNew: boolean
  readonly input: PromptInput
  readonly undo: Effect.Effect<void>
}

/** Checks the folder, the agent and the model of a session on this machine; returns the agent's name. */
const usable = Effect.fn("Command.prompt.usable")(function* (options: Options, session: Session) {
  const { directory } = session.location
  // A prompt that repeats an id prints the first one's outcome, which does not need the folder.
  if (options.id === undefined) yield* Folder.usable(directory, session.id)
  yield* trusting(directory)
  const { model, name } = yield* findAgent(options.agent ?? session.agent, directory)
  if (options.model === undefined) yield* resolveModel(session.model ?? model)
  return name
})

/** Checks the agent and the model of a new session on this machine; returns the agent's name, and the model to store. */
const startable = Effect.fn("Command.prompt.startable")(function* ({ agent, directory, model }: Options) {
  yield* trusting(directory)
  const { model: itsModel, name } = yield* findAgent(agent, directory)
  if (model !== undefined) return { agent: name, model }
  const projects = itsModel === undefined ? yield* modelOfProject(directory) : undefined
  yield* resolveModel(itsModel ?? projects)
  if ((itsModel ?? projects) === undefined) yield* announceModel()
  return { agent: name, model: projects }
})

/** Continues an existing session. Everything is checked before anything is changed. */
const goOn = Effect.fn("Command.prompt.goOn")(function* (options: Options, session: Session) {
  const sessions = yield* Sessions
  const { directory, model } = options
  const stopped = unfinished(session.id, session.imported)
  if (stopped !== undefined) return yield* stopped
  yield* modeCounts(session.id)
  if (options.inFolder && session.location.directory !== directory) {
    return yield* new UsageError({
      message: `${session.id} works in ${oneLine(session.location.directory, 400)}; --cwd is for a new session`
    })
  }
  const name = (yield* Remote) === undefined ? yield* usable(options, session) : (options.agent ?? session.agent)
  const input = yield* inputOf(options, session.location.directory)
  if (model !== undefined) yield* sessions.switchModel(session.id, model)
  if (options.agent !== undefined && name !== undefined && name !== session.agent)
    yield* sessions.switchAgent(session.id, name)
  return { session, isNew: false, input, undo: Effect.void } satisfies PromptTarget
})

/** Creates a session. Everything is checked before. */
const begin = Effect.fn("Command.prompt.begin")(function* (options: Options, title: string | undefined) {
  const sessions = yield* Sessions
  const { directory, text } = options
  const { agent, model } = (yield* Remote) === undefined ? yield* startable(options) : options
  const input = yield* inputOf(options, directory)
  const wanted = { location: { directory }, agent: options.agent === undefined ? undefined : agent, model }
  if (title === undefined) {
    const session = yield* sessions.create({ ...wanted, title: titleOfPrompt(text), provisional: true })
    // If the prompt is refused, its new session is removed.
    return { session, isNew: true, input, undo: Effect.ignore(sessions.remove(session.id)) } satisfies PromptTarget
  }
  const { isNew, session } = yield* Effect.catchTag(sessions.named({ ...wanted, title }), "TitleAmbiguous", (error) =>
    Effect.map(SessionReference.ambiguous(title, error.sessionIDs), (session) => ({ isNew: false, session }))
  )
  // Another process may have found the new session by its name: it stays, even without a prompt.
  return isNew ? ({ session, isNew, input, undo: Effect.void } satisfies PromptTarget) : yield* goOn(options, session)
})

const prepare = Effect.fn("Command.prompt.prepare")(function* (options: Options) {
  const { directory, session: reference } = options
  const found = reference === undefined ? undefined : yield* SessionReference.find(reference, directory)
  if (found !== undefined) return yield* goOn(options, found)
  return yield* begin(options, reference?.type === "title" ? reference.title : undefined)
})

const announce = (session: Session, isNew: boolean) =>
  `session ${session.id}${session.title === undefined ? "" : ` "${oneLine(session.title, 60)}"`}${isNew ? " (new)" : ""}\n`

const run = Effect.fn("Command.prompt")(function* (options: Options) {
  const output = yield* Output
  const sessions = yield* Sessions
  const { input: asked, isNew, session, undo } = yield* prepare(options)
  if (options.cost !== undefined || options.tokens !== undefined) {
    const budget = withLimits(session.budget ?? {}, options)
    yield* Effect.tapError(sessions.setBudget(session.id, budget), () => undo)
  }
  const prompt = {
    id: options.id ?? (yield* (yield* Identifiers).message),
    sessionID: session.id,
    prompt: asked,
    delivery: options.delivery
  }
  if (options.noRun) {
    const input = yield* Effect.tapError(sessions.prompt({ ...prompt, resume: false }), () => undo)
    yield* Breadcrumb.leave({ directory: options.directory, sessionID: session.id })
    return yield* options.json ? writeJson(input) : output.write(`${input.id} admitted to ${session.id}\n`)
  }
  const RunFollower = yield* runFollower
  yield* RunFollower.follow({
    sessionID: session.id,
    json: options.json,
    promptID: prompt.id,
    structured: options.output !== undefined,
    reasoning: !options.noReasoning,
    start: RunFollower.admitted(prompt).pipe(
      Effect.tapError(() => undo),
      Effect.tap(() => output.note(announce(session, isNew))),
      Effect.tap(() => Breadcrumb.leave({ directory: options.directory, sessionID: session.id }))
    )
  })
})

/** Checks the requested model. Without a database no session has a model, so the named or default one must resolve. */
const wantedModel = Effect.fn("Command.prompt.model")(function* (
  text: string | undefined,
  agent: string | undefined,
  directory: string
) {
  // A server checks agents and models itself.
  if ((yield* Remote) !== undefined) return text === undefined ? undefined : yield* parsedModel(text)
  const wanted = text === undefined ? undefined : yield* withModels(readModel(text))
  if (yield* DatabasePath.exists) return wanted
  yield* trusting(directory)
  yield* withNoSessions(
    Effect.gen(function* () {
      const { model } = yield* findAgent(agent, directory)
      if (wanted === undefined) yield* chosenModel(model ?? (yield* modelOfProject(directory)))
    })
  )
  return wanted
})

/** Which session the prompt is for. */
interface Target<E, R> {
  readonly cwd: string | undefined
  readonly reference: Effect.Effect<SessionReference.Reference | undefined, E, R>
  readonly id: MessageID | undefined
}

/** The text of the words or of stdin; without words, a person at the terminal types it. */
const textOf = Effect.fn("Command.prompt.text")(function* (words: ReadonlyArray<string>, stdin: boolean) {
  if (stdin || words.length > 0 || !Question.canAsk()) return yield* PromptWords.readText(words, stdin)
  const { recalled } = yield* Effect.promise(() => import("./search.ts"))
  const earlier = (yield* DatabasePath.exists) ? yield* recalled : []
  return yield* PromptWords.notEmpty((yield* PromptLine.read(earlier)) ?? "")
})

const admit = <E, R>(given: FieldValues<typeof promptGiven>, { cwd, id, reference }: Target<E, R>) =>
  // Checks that need no database come before it is created.
  Effect.gen(function* () {
    const { agent, outputSchema: schema } = given
    const directory = yield* Folder.given(cwd, "--cwd")
    const options: Options = {
      ...given,
      session: yield* reference,
      directory,
      inFolder: cwd !== undefined,
      text: yield* textOf(given.words, given.stdin),
      attach: yield* Effect.forEach(given.attach, PromptWords.findAttachment),
      output: schema === undefined ? undefined : yield* PromptWords.readSchema(schema),
      model: yield* wantedModel(given.model, agent, directory),
      id
    }
    return yield* withNewSessions(run(options))
  }).pipe(told(given.trust), inMode(given))

export const prompt = verb({
  name: "prompt",
  summary: "admit a prompt, run it and stream the answer",
  words: "TEXT...",
  details: [
    "The text is the words. Without words it is stdin; on a terminal, one line is asked for, and up-arrow recalls earlier " +
      "prompts. A dash as the only word means stdin. The answer goes to stdout, progress to stderr; with --json, the durable events go to stdout instead.",
    "Without --session it creates a session in the folder. A NAME is searched in the folder first, then everywhere.",
    "@NAME in the text shows the model a file (with @NAME#L10-20 some of its lines), a folder, or a configured reference, " +
      "agent or MCP resource of that name; /NAME at the start inserts a template. Both are read once, now.",
    "Ctrl-C interrupts the turn, keeps the inbox and waits until the session has settled; a second one exits immediately. " +
      "On a terminal you are asked before a tool does anything that is not allowed yet, and you get the model's questions. " +
      "Elsewhere such calls are refused, and the model asks nothing unless DAYBOOK_QUESTIONS=1 (then use daybook answer).",
    "--allow, --accept-edits and --read-only say what this run may do besides its agent's rules. RULES are permissions " +
      "(edit, bash, task, external_directory, SERVER_TOOL), each with a pattern after a space: a command, a path. A run in " +
      "which calls were refused names them at its end, with exit code 11. --cost and --tokens set the session's budget, " +
      "as daybook budget does; a run that it stops has exit code 12."
  ],
  given: {
    session: Flags.text("session", "ID|NAME", "the session; an unknown NAME creates a session with that title"),
    cwd: Flags.text("cwd", "DIR", "the folder of a new session (default: the current one)"),
    id: Flags.value("id", "MSG", "the prompt's id, msg_...; a repeated prompt runs only once", (text) =>
      Effect.mapError(
        Schema.decodeUnknown(MessageID)(text),
        () => "msg_ followed by 1-96 letters, digits, dots, underscores or hyphens"
      )
    ),
    ...promptGiven
  },
  examples: [
    ['daybook prompt "Which scripts does package.json define? Read it first."', "a new session in this folder"],
    ['daybook prompt --session fix "Now the tests."', "continues the session called fix, or creates it"],
    ["git diff | daybook prompt --session review", "the prompt is the output of git diff"],
    [
      "daybook prompt --accept-edits --allow 'bash npm test' 'Make the tests pass.'",
      "edits files and runs the tests without asking"
    ],
    [
      "daybook prompt --allow 'edit,bash npm test' --cost 2 'Make the tests pass.' || echo not done",
      "works unattended, for at most 2 dollars"
    ],
    ["daybook prompt --agent plan 'What does @src/main.ts do?'", "uses the agent that changes nothing, with a file"],
    [
      'daybook prompt --tools "*=off" --output-schema form.json "Sum up @notes.txt." | jq .title',
      "without tools, answered as JSON of this schema"
    ],
    ['daybook prompt --session fix --delivery queue --no-run "Then the docs."', "leaves it for later"]
  ],
  overServer: true,
  run: (given) =>
    admit(given, {
      cwd: given.cwd,
      reference: given.session === undefined ? Effect.succeed(undefined) : SessionReference.parse(given.session),
      id: given.id
    })
})

const found = Effect.flatMap(Folder.current, (directory) => withReader(SessionReference.recent(directory)))

const show = Effect.fn("Command.continue.show")(function* (json: boolean) {
  const session = yield* found
  yield* json ? writeJson(session) : (yield* Output).write(sessionTable([session]))
})

export const continueLast = verb({
  name: "continue",
  summary: "prompt the session that was used last here",
  words: "[TEXT...]",
  details: [
    "It continues the session that this terminal prompted last from this folder, else the one used last in this folder. " +
      "Sessions that agents created do not count. Without text, it prints which session that is, and changes nothing.",
    "The text is the words; it is stdin if the only word is a dash. The options are those of daybook prompt."
  ],
  given: promptGiven,
  examples: [
    ["daybook continue", "shows the session that would be continued"],
    ['daybook continue "Now the tests."', "prompts it"],
    ["git diff | daybook continue -", "the prompt is the output of git diff"]
  ],
  overServer: true,
  run: (given) =>
    given.words.length === 0 && !given.stdin
      ? show(given.json)
      : admit(given, {
          cwd: undefined,
          reference: Effect.map(found, ({ id }) => ({ type: "id" as const, id })),
          id: undefined
        })
})
