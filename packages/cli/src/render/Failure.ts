/** Renders every failure as one sentence with a stable exit code (CL-40, CL-41). Pure. */
import { Cause, ConfigError, Predicate } from "effect"
import { knownAs } from "@daybook/models/Servers"
import { CommandEnded, HostNotStarted, isMissing } from "../support/Errors.ts"
import { exitOutputFailed } from "../support/Stream.ts"
import { oneLine } from "./Plain.ts"

/** The last sentence and exit code of the process; without a sentence it ends quietly. */
type Failure = { readonly code: number; readonly sentence: string | undefined }

export const exitCode = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  conflict: 4,
  model: 5,
  database: 6,
  answerCut: 7,
  answerFiltered: 8,
  answerRefused: 9,
  answerEmpty: 10,
  callsRefused: 11,
  budgetSpent: 12,
  internal: 70,
  output: exitOutputFailed,
  interrupted: 130
} as const

/** The tags of errors by exit code. */
const tags: ReadonlyArray<readonly [code: number, tags: string]> = [
  [
    exitCode.usage,
    "BindingRefused ConfigError CursorAhead Forbidden InvalidInput InvalidOption NameTaken NotServed " +
      "ParseError SiteRefused Unauthorized UsageError"
  ],
  [
    exitCode.notFound,
    "AgentNotFound CheckpointNotFound CursorExpired ForeignCursor HostAbsent MessageNotFound NotFound " +
      "NothingShown NothingToRedo NothingToUndo OutputNotFound SessionNotFound ShellClosed ShellNotFound"
  ],
  [
    exitCode.conflict,
    "EventRefused HostBusy HostDiffers HostEnding ImportDiffers ImportUnfinished InboxFullError OwnerLost " +
      "PromptConflictError PruneLost QuestionClosed RootBusy SeqConflict SessionBusy SessionContinued " +
      "ShellLimit SocketBusy SourceDiffers TooManyRequests"
  ],
  [
    exitCode.model,
    "ModelNotFound ModelNotSelected ModelUnreachable ProviderFailed ProviderNotFound UnsupportedApi " +
      "VariantUnavailable"
  ],
  [
    exitCode.database,
    "BackupFailed ContextSnapshotUnreadable DatabaseError DatabaseProblem DatabaseUnsound " +
      "DifferenceUnreadable EventUnreadable FileFailed FolderUnusable HostUnusable InternalError " +
      "InvalidDurableEvent LedgerFailed LogUnavailable MessageUnreadable OutboxFailed PathRefused " +
      "PlacementFailed PortUnusable RootOfAnotherStore RootUnusable ServeFailed ServerUnreachable " +
      "ShellRecordFailed ShellsUnavailable SocketUnusable SqlError Stopping ToolStorageError TrustError " +
      "UnexpectedAnswer"
  ],
  [exitCode.answerCut, "answer.cut"],
  [exitCode.answerFiltered, "answer.filtered"],
  [exitCode.answerRefused, "answer.refused"],
  [exitCode.answerEmpty, "answer.empty"],
  [exitCode.callsRefused, "CallsRefused"],
  [exitCode.budgetSpent, "BudgetExceeded"],
  [
    exitCode.failed,
    "ActivityFailed ArchiveUnusable BranchNotSummarized CheckpointFailed CommandBlocked CopyIncomplete " +
      "DiscordError DiscordIncomplete EventStream FileProblem FilesDiffer HostLost ImportIncomplete " +
      "InitializationBlocked LogUnreadable MessageTooLong NoHead NotASession PriceUnknown PruneIncomplete " +
      "RedactionFailed RedoRefused SessionVersionTooNew SnapshotUnavailable StructuredOutputFailed " +
      "TransportFailed TurnLimitExceeded UndoIncomplete UnknownDialect"
  ],
  [exitCode.output, "OutputFailed"],
  [exitCode.interrupted, "Interrupted RunInterrupted"]
]

const codes = new Map(tags.flatMap(([code, names]) => names.split(" ").map((name) => [name, code] as const)))

/** Reasons of database errors that are conflicts with another process, or with an existing file. */
const conflicts: ReadonlySet<unknown> = new Set(["busy", "in-use", "exists"])

/** Advice by the reason of a database error. */
const advices = new Map([
  ["busy", "another process holds it: try again"],
  ["away", "check that it runs, then try again"],
  ["read-only", "make it writable, or set DAYBOOK_DB to another one"],
  ["disk-full", "free some space and try again; what is stored stays readable"],
  ["corrupt", "daybook doctor says what is wrong"],
  ["io", "check the disk, then try again"]
])

/** Advice by the tag of an error. */
const hints = new Map([
  ["ProviderNotFound", "; daybook models lists what can be chosen with --model"],
  ["Unauthorized", "; daybook token makes one, as the user that runs the server"],
  ["UnexpectedAnswer", "; is its address the one that daybook serve prints?"]
])

export const failureOf = (error: unknown): Failure => {
  if (Predicate.isTagged(error, "OutputClosed")) return { code: exitCode.ok, sentence: undefined }
  const tag = Predicate.hasProperty(error, "_tag") && typeof error._tag === "string" ? error._tag : undefined
  if (error instanceof CommandEnded) return { code: error.code, sentence: undefined }
  if (error instanceof HostNotStarted) return { code: error.code, sentence: words(error) }
  const code = tag === undefined ? undefined : codes.get(tag)
  if (Predicate.hasProperty(error, "syscall") && error.syscall === "uv_cwd") {
    return { code: exitCode.usage, sentence: "the current folder no longer exists; change to another folder" }
  }
  if (code === undefined) {
    return {
      code: exitCode.internal,
      sentence: `internal error: ${words(error)} (DAYBOOK_DEBUG=1 shows where)`
    }
  }
  // No sentence: the reader of the output is gone.
  if (tag === "Interrupted" && Predicate.hasProperty(error, "message") && error.message === "") {
    return { code, sentence: undefined }
  }
  if (tag === "ActivityFailed" || tag === "ProviderFailed") {
    const ownCode = tag === "ActivityFailed" ? activityCode(error) : code
    const advice = ownCode === exitCode.budgetSpent ? budgetAdvice : providerAdvice(words(error))
    return { code: ownCode, sentence: `${words(error)}${advice}` }
  }
  const hint = tag === undefined ? undefined : hints.get(tag)
  if (code !== undefined && hint !== undefined) return { code, sentence: `${words(error)}${hint}` }
  if (isMissing(error)) return { code: exitCode.notFound, sentence: `${words(error)} yet; daybook prompt creates it` }
  const reason = Predicate.hasProperty(error, "reason") ? error.reason : undefined
  const advice = tag === "LogUnavailable" && typeof reason === "string" ? advices.get(reason) : undefined
  return {
    code: code === exitCode.database && conflicts.has(reason) ? exitCode.conflict : code,
    sentence: advice === undefined ? words(error) : `${words(error)}; ${advice}`
  }
}

/** How to go on after a budget is spent; the error ends with what to do. */
const budgetAdvice = ": daybook budget --cost USD or --tokens N, then daybook resume"

/** The variable that holds a provider's key, where it needs more words than its name. */
const keys: ReadonlyArray<readonly [providerID: string, variable: string]> = [
  ["openai-compatible", "DAYBOOK_API_KEY (of the server at DAYBOOK_BASE_URL)"]
]

const addresses: ReadonlyArray<readonly [providerID: string, variable: string]> = [
  ["anthropic", "ANTHROPIC_BASE_URL, if it is set"],
  ["openai", "OPENAI_BASE_URL, if it is set"],
  ["openai-compatible", "DAYBOOK_BASE_URL"]
]

/** Advice for a provider that refuses the key, does not have the model, or does not answer. */
const providerAdvice = (sentence: string): string => {
  // The refusal of content says what to do.
  if (sentence.endsWith("with daybook switch")) return ""
  const [, provider, status] = /^([\w.-]+): .*?\banswered HTTP (401|403|404)\b/.exec(sentence) ?? []
  const address = addresses.find(([providerID]) => providerID === provider)?.[1]
  if (status === "404") {
    const isBare = /^[\w.-]+: [^/\s]+\/chat\/completions /.test(sentence)
    const variable = address ?? (isBare ? "the provider's baseURL" : undefined)
    const check = variable === undefined ? "" : `, and check ${variable}${isBare ? ", which usually ends in /v1" : ""}`
    return `; choose a model that daybook models lists${check}`
  }
  const own = keys.find(([providerID]) => providerID === provider)?.[1]
  const variable = own ?? (provider === undefined ? undefined : knownAs(provider)?.keys[0])
  if (variable === undefined) return ""
  return status === "401" ? `; set ${variable} to a key that it accepts` : `; the key in ${variable} lacks permission`
}

/** The failure for a cause: its first failure, else its first defect, else an interruption. */
export const failureOfCause = (cause: Cause.Cause<unknown>): Failure => {
  const failure = Cause.failureOption(cause)
  if (failure._tag === "Some") return failureOf(failure.value)
  const defect = Cause.dieOption(cause)
  if (defect._tag === "Some") return failureOf(defect.value)
  return { code: exitCode.interrupted, sentence: undefined }
}

/** The log stores the tag of an activity's error, if the error had a tag: the exit code is the code of the error. */
const activityCode = (error: unknown): number => {
  const type = Predicate.hasProperty(error, "type") && typeof error.type === "string" ? error.type : ""
  return codes.get(type) ?? (type === "provider" ? exitCode.model : exitCode.failed)
}

/** Renders the faults of the environment, each with its variable. */
const variables: ConfigError.ConfigErrorReducer<undefined, string> = {
  andCase: (_, left, right) => `${left}; ${right}`,
  orCase: (_, left, right) => `${left}, or ${right}`,
  invalidDataCase: (_, path, message) => named(path, message),
  missingDataCase: (_, path, message) => named(path, message),
  sourceUnavailableCase: (_, path, message) => named(path, message),
  unsupportedCase: (_, path, message) => named(path, message)
}

const named = (path: ReadonlyArray<string>, message: string): string => {
  const variable = path.join("_")
  return variable === "" || message.includes(variable) ? message : `${variable}: ${message}`
}

const words = (error: unknown): string => {
  if (ConfigError.isConfigError(error)) return oneLine(ConfigError.reduceWithContext(error, undefined, variables), 2000)
  const message = Predicate.hasProperty(error, "message") ? error.message : undefined
  return oneLine(typeof message === "string" && message !== "" ? message : String(error), 2000)
}
