/**
 * `daybook setup`: asks for a model server and its key, a model, the trust of the folder and completion, each of which can be
 * skipped. Spec: CL-780..CL-785 in specs/cli.md.
 */
import { appendFile, readFile } from "node:fs/promises"
import { homedir } from "node:os"
import { basename, join } from "node:path"
import { Effect, Either, Redacted } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"
import { Listing, type Models, OfflineModel, Servers } from "@daybook/models"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { readText } from "../arguments/PromptWords.ts"
import { verb } from "../arguments/Verb.ts"
import * as Keychain from "../config/Keychain.ts"
import * as KeyFile from "../config/KeyFile.ts"
import * as Keys from "../host/Keys.ts"
import { chosenModel, readModel, trusting, withModels } from "../host/Runtime.ts"
import { columns, oneLine } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { FileProblem, UsageError } from "../support/Errors.ts"
import { didYouMean } from "../support/Nearest.ts"
import { Output } from "../terminal/Output.ts"
import * as Question from "../terminal/Question.ts"

type Server = (typeof Servers.servers)[number]

/** A server to use: a known one, or one's own at an address. */
type Choice = { readonly type: "known"; readonly server: Server } | { readonly type: "own"; readonly baseUrl: string }

const ownProvider = "openai-compatible"
const ownKey = "DAYBOOK_API_KEY"
const exampleAddress = "http://localhost:11434/v1"

const variableOf = (choice: Choice): string => (choice.type === "own" ? ownKey : (choice.server.keys[0] ?? ownKey))

/** The variable of the server's key that is set, by the environment or by an earlier setup. */
const variableSet = ({ keys }: Server): string | undefined => {
  const inKeychain = KeyFile.namedInKeychain()
  return keys.find((key) => (process.env[key] ?? "").trim() !== "" || inKeychain.includes(key))
}

const say = (text: string) => Effect.flatMap(Output, (output) => output.note(text))

const isYes = (typed: string | undefined): boolean => /^y(?:es)?$/i.test(typed?.trim() ?? "")

/** The provider of a number of the list, of its name, or at an address. */
const choiceOf = (typed: string): Either.Either<Choice, string> => {
  const server = Servers.servers[/^\d+$/.test(typed) ? Number(typed) - 1 : -1] ?? Servers.serverOf(typed.toLowerCase())
  if (server !== undefined) return Either.right({ type: "known", server })
  // A browser shows `localhost:11434`; without a scheme only a host with a port is surely an address.
  const address = /^[\w.-]+:\d+(?:\/|$)/.test(typed) ? `http://${typed}` : typed
  if (/^https?:\/\//.test(address) && URL.canParse(address)) return Either.right({ type: "own", baseUrl: address })
  const names = Servers.servers.map(({ provider }) => provider)
  const hint = didYouMean(typed, names) || `; for a server of your own, give its address, such as ${exampleAddress}`
  return Either.left(`there is no model server "${oneLine(typed, 40)}"${hint}`)
}

/** How many models the server lists to the key, or why it lists none. */
const counted = (choice: Choice, key: string): Effect.Effect<number, string> => {
  const apiKey = key === "" ? {} : { apiKey: Redacted.make(key) }
  const [name, provider]: readonly [string, Models.Provider] =
    choice.type === "own"
      ? [ownProvider, { api: ownProvider, baseUrl: choice.baseUrl, ...apiKey }]
      : [choice.server.provider, { api: choice.server.api, baseUrl: choice.server.baseUrl, ...apiKey }]
  const target = Listing.targetOf(name, provider)
  return target === undefined ? Effect.succeed(0) : Effect.map(Listing.list(target), (found) => found.length)
}

/** Chat completions are usually below `/v1`, and their address is often given without it. */
const withPath = (choice: Choice): Choice =>
  choice.type === "own" && new URL(choice.baseUrl).pathname === "/"
    ? { type: "own", baseUrl: new URL("v1", choice.baseUrl).href }
    : choice

/** What the server says to the key, and its address completed: the given one stays if only it lists models. */
const checked = Effect.fnUntraced(function* (given: Choice, key: string) {
  const choice = withPath(given)
  const answer = yield* Effect.either(counted(choice, key))
  if (choice === given || Either.isRight(answer)) return { choice, answer }
  const plain = yield* Effect.either(counted(given, key))
  return Either.isRight(plain) ? { choice: given, answer: plain } : { choice, answer }
})

/** Keeps the key of a server, and the address of one's own. */
const keep = Effect.fnUntraced(function* (choice: Choice, key: string, inKeychain: boolean) {
  if (choice.type === "own") yield* Keys.save({ DAYBOOK_BASE_URL: choice.baseUrl })
  if (key !== "" && inKeychain) {
    yield* Keychain.save(variableOf(choice), key)
    yield* Keys.inKeychain(variableOf(choice))
    process.env[variableOf(choice)] = key
    return yield* say(`kept in the system's keychain; ${KeyFile.path()} says so\n`)
  }
  if (key !== "") yield* Keys.inFile(variableOf(choice), key)
  yield* say(`kept in ${KeyFile.path()}, which only you can read\n`)
})

/** Asks whether the key goes into the keychain, where there is one; a keychain that does not keep it leaves the file. */
const keepAsked = Effect.fnUntraced(function* (choice: Choice, key: string) {
  const program = key === "" ? undefined : Keychain.program()
  if (program === undefined) return yield* keep(choice, key, false)
  const typed = yield* Question.ask(`Keep the key in the system's keychain (${program})? [Y/n] `)
  if (typed === undefined) return
  if (typed.trim() !== "" && !isYes(typed)) return yield* keep(choice, key, false)
  yield* Effect.catchTag(keep(choice, key, true), "FileProblem", ({ message }) =>
    Effect.zipRight(say(`${message}\n`), keep(choice, key, false))
  )
})

// ---- the steps at a terminal

const askServer = Effect.fnUntraced(function* () {
  const rows = Servers.servers.map((server, at) => {
    const variable = variableSet(server)
    return [String(at + 1), server.provider, server.name, variable === undefined ? "" : `has a key (${variable})`]
  })
  yield* say(`\nModel servers:\n${columns(rows)}`)
  for (;;) {
    const typed = yield* Question.ask("A number or name, or the address of your own server; Enter skips: ")
    if (typed === undefined || typed.trim() === "") return undefined
    const choice = choiceOf(typed.trim())
    if (Either.isRight(choice)) return choice.right
    yield* say(`${choice.left}\n`)
  }
})

/** A server with its key; the key is absent if none was given. */
interface Access {
  readonly choice: Choice
  readonly key: string | undefined
}

/** Asks for the key until the server takes it; undefined if the server is to be chosen again. */
const askKey = Effect.fnUntraced(function* (given: Choice) {
  const variable = variableOf(given)
  for (;;) {
    const typed = yield* Question.hidden(`The key, which is not shown (${variable}); Enter for none: `)
    const none: Access = { choice: given, key: undefined }
    if (typed === undefined) return none
    const key = typed.trim()
    if (key === "" && given.type === "known") return none
    yield* say("asking the server for its models ...\n")
    const { answer, choice } = yield* checked(given, key)
    const access: Access = { choice, key }
    if (Either.isRight(answer)) {
      yield* say(answer.right === 0 ? "the server was not asked\n" : `it lists ${many(answer.right, "model")}\n`)
      return access
    }
    yield* say(`${oneLine(answer.left, 400)}\n`)
    const kept = yield* Question.ask("Keep it all the same? [y/N] ")
    if (isYes(kept)) return access
    if (kept === undefined) return none
    // Another key does not help if the address is wrong.
    if (given.type === "own" && !/HTTP 40[13]$/.test(answer.left)) return undefined
  }
})

const askAccess = Effect.fnUntraced(function* () {
  for (;;) {
    const choice = yield* askServer()
    if (choice === undefined) return undefined
    const access = yield* askKey(choice)
    if (access !== undefined) return access
  }
})

const shownModels = 12

/** Asks for the default model among those of the provider. */
const askModel = Effect.fnUntraced(function* (provider: string, first: string | undefined) {
  const { list } = yield* Effect.promise(() => import("../host/ModelList.ts"))
  const { models } = yield* list(false)
  const own = models.map(({ model }) => model).filter((model) => model.startsWith(`${provider}/`))
  const usual = first === undefined ? own[0] : `${provider}/${first}`
  const shown = [...new Set([...(usual === undefined ? [] : [usual]), ...own])].slice(0, shownModels)
  if (shown.length === 0) return yield* say("the server lists no model; name one with --model or DAYBOOK_MODEL\n")
  const more = own.length > shown.length ? `and ${own.length - shown.length} more: daybook models ${provider}\n` : ""
  yield* say(`\nModels:\n${columns(shown.map((model, at) => [String(at + 1), model]))}${more}`)
  for (;;) {
    const typed = (yield* Question.ask("The model that answers by default, a number or name; Enter for 1: "))?.trim()
    if (typed === undefined) return
    const model = typed === "" ? shown[0] : (shown[/^\d+$/.test(typed) ? Number(typed) - 1 : -1] ?? typed)
    const found = yield* Effect.either(withModels(readModel(model ?? "")))
    if (Either.isRight(found)) {
      yield* Keys.save({ DAYBOOK_MODEL: model ?? "" })
      return yield* say(`the default model is ${oneLine(model ?? "")}\n`)
    }
    yield* say(`${oneLine(found.left.message, 400)}\n`)
  }
})

/** How each shell reads completions: its file, and the line for it. */
const shells: Readonly<Record<string, readonly [file: string, line: string]>> = {
  bash: [".bashrc", 'eval "$(daybook --completions bash)"'],
  zsh: [".zshrc", 'eval "$(daybook --completions zsh)"'],
  fish: [".config/fish/config.fish", "daybook --completions fish | source"]
}

const askCompletion = Effect.fnUntraced(function* () {
  const [file, line] = shells[basename(process.env["SHELL"] ?? "")] ?? []
  if (file === undefined || line === undefined) return
  const path = join(homedir(), file)
  const text = yield* Effect.promise(() => readFile(path, "utf8").catch(() => ""))
  if (text.includes(line)) return
  if (!isYes(yield* Question.ask(`\nAdd completion of commands to ~/${file}? [y/N] `))) return
  yield* Effect.tryPromise({
    try: () => appendFile(path, `${text === "" || text.endsWith("\n") ? "" : "\n"}${line}\n`),
    catch: (cause) => new FileProblem({ message: `${path} cannot be written (${codeOf(cause, String(cause))})` })
  })
  yield* say("new shells have it\n")
})

/** The last line of setup: a model answers, or what is missing. */
const outcome = Effect.match(withModels(chosenModel(undefined)), {
  onFailure: ({ message }) => oneLine(message, 600),
  onSuccess: ({ info }) =>
    OfflineModel.isOffline(info.ref)
      ? "No model server was set up: the offline model answers, a fixed program. daybook setup asks again."
      : "Ready: daybook opens a screen here; daybook doctor checks everything."
})

const guided = Effect.gen(function* () {
  yield* say("Each step can be skipped with Enter; Ctrl-C ends the setup and keeps what was answered.\n")
  const { choice, key } = (yield* askAccess()) ?? {}
  if (choice !== undefined && key !== undefined) yield* keepAsked(choice, key)
  const isUsable = key !== undefined || (choice?.type === "known" && variableSet(choice.server) !== undefined)
  if (choice !== undefined && isUsable) {
    const known = choice.type === "known" ? choice.server : undefined
    yield* askModel(known?.provider ?? ownProvider, known?.model)
  }
  yield* trusting(yield* Folder.current)
  yield* askCompletion()
  yield* say(`\n${yield* outcome}\n`)
})

// ---- without a terminal

const noKey = new UsageError({ message: "no key was given: pipe it into daybook setup --provider NAME" })

const piped = Effect.orElseSucceed(readText(["-"], false), () => "")

/** Keeps the key that stdin has, or that is typed; a server of one's own may need none. */
const fromStdin = Effect.fnUntraced(function* (provider: string, inKeychain: boolean) {
  const given = yield* Either.mapLeft(choiceOf(provider), (message) => new UsageError({ message }))
  const typed = process.stdin.isTTY ? yield* Question.hidden(`The key (${variableOf(given)}): `) : yield* piped
  const key = typed?.trim() ?? ""
  if (key === "" && given.type === "known") return yield* noKey
  const { answer, choice } = yield* checked(given, key)
  if (Either.isLeft(answer)) yield* say(`${oneLine(answer.left, 400)}; it is kept all the same\n`)
  yield* keep(choice, key, inKeychain)
})

const run = Effect.fn("Command.setup")(function* (
  provider: string | undefined,
  model: string | undefined,
  inKeychain: boolean
) {
  if (inKeychain && provider === undefined) {
    return yield* new UsageError({ message: "--keychain goes with --provider: without it, setup asks" })
  }
  if (provider === undefined && model === undefined) {
    if (Question.canAsk()) return yield* guided
    return yield* new UsageError({
      message: `setup asks at a terminal; elsewhere use --provider and --model, or ${Servers.howToConfigure}`
    })
  }
  if (provider !== undefined) yield* fromStdin(provider, inKeychain)
  if (model === undefined) return
  yield* withModels(readModel(model))
  yield* Keys.save({ DAYBOOK_MODEL: model })
  yield* say(`the default model is ${oneLine(model)}\n`)
})

export const setup = verb({
  name: "setup",
  summary: "choose a model server, a key and a model, and keep them for later",
  words: "",
  details: [
    "It asks for a model server and its key, for the model that answers by default, for the trust of this folder, and for " +
      "completion in your shell. Each step can be skipped. A key is kept in the system's keychain if secret-tool (Linux) or " +
      "security (macOS) is installed and you want it, else in a file of Daybook's data folder that only you can read. " +
      "Variables of the environment take precedence.",
    "Without a terminal, --provider reads the key from stdin, and --model sets the default model. An address in place of " +
      "a provider's name is a server of your own with the chat completions API; it may need no key."
  ],
  given: {
    provider: Flags.text("provider", "NAME|URL", "keep the key on stdin for this model server"),
    model: Flags.text("model", "P/M", "the model that answers by default, provider/model"),
    keychain: Flags.toggle("keychain", "with --provider: keep the key in the system's keychain")
  },
  examples: [
    ["daybook setup", "asks for everything"],
    ["daybook setup --provider mistral < key.txt", "keeps a key without asking"],
    [`daybook setup --provider ${exampleAddress} < /dev/null`, "uses a server of your own that needs no key"]
  ],
  run: ({ keychain, model, provider }) => run(provider, model, keychain)
})
