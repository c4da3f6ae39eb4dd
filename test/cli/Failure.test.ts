import { assert, describe, it } from "@effect/vitest"
import { Cause, ConfigError } from "effect"
import { InternalError, NotServed, SiteRefused, Unauthorized } from "../../packages/api/src/wire/Access.ts"
import { fileAt } from "../../packages/cli/src/config/DatabasePath.ts"
import { room } from "../../packages/cli/src/host/Checkup.ts"
import { failureOf, failureOfCause } from "../../packages/cli/src/render/Failure.ts"
import { ActivityFailed, Interrupted, OutputClosed, UsageError } from "../../packages/cli/src/support/Errors.ts"
import { BranchNotSummarized } from "../../packages/core/src/session/Branching.ts"
import { UnexpectedAnswer } from "../../packages/client/src/ClientError.ts"
import { ModelNotFound, ProviderNotFound } from "../../packages/core/src/model/ModelResolver.ts"
import { ProviderFailed } from "../../packages/core/src/runner/RunError.ts"
import { SessionBusy } from "../../packages/log/src/coordination/SessionOwner.ts"
import type { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { InboxFullError, PromptConflictError } from "../../packages/log/src/domain/InboxError.ts"
import { LogUnavailable, SessionNotFound } from "../../packages/log/src/log/EventLog.ts"
import { DatabaseError } from "../../packages/log/src/storage/Database.ts"

const sessionID = "ses_a" as SessionID
const messageID = "msg_a" as MessageID

describe("Failure", () => {
  it.each([
    [2, new UsageError({ message: "no" })],
    [2, new SiteRefused({ part: "host" })],
    [2, new NotServed({ what: "search" })],
    [6, new InternalError()],
    [3, new SessionNotFound({ sessionID })],
    [4, new PromptConflictError({ sessionID, messageID })],
    [4, new InboxFullError({ sessionID, limit: 3 })],
    [5, new ModelNotFound({ providerID: "p", modelID: "m", known: [] })],
    [
      5,
      new ProviderFailed({
        sessionID,
        providerID: "p",
        details: "no",
        retryable: false,
        overflow: false,
        partial: false
      })
    ],
    [6, new DatabaseError({ filename: "f", reason: "corrupt", details: "damaged" })],
    [4, new DatabaseError({ filename: "f", reason: "busy", details: "held" })],
    [4, new LogUnavailable({ operation: "append", reason: "busy", cause: new Error("x") })],
    [6, new LogUnavailable({ operation: "append", reason: "disk-full", cause: new Error("x") })],
    [1, new ActivityFailed({ message: "no", type: "TurnLimitExceeded" })],
    [12, new ActivityFailed({ message: "no", type: "BudgetExceeded" })],
    [5, new ActivityFailed({ message: "no", type: "ProviderFailed" })],
    [5, new ActivityFailed({ message: "no", type: "provider" })],
    [1, new ActivityFailed({ message: "no", type: "anything.else" })],
    [130, new Interrupted({ message: "stopped" })]
  ])("CL-40: exit code %i for %s", (code, error) => {
    const failure = failureOf(error)
    assert.strictEqual(failure.code, code)
    assert.notInclude(failure.sentence ?? "\n", "\n")
  })

  it("CL-40: a database on a full disk is told once, with what to do", () => {
    const error = new LogUnavailable({ operation: "append", reason: "disk-full", cause: new Error("x") })
    const advice = "free some space and try again; what is stored stays readable"
    assert.strictEqual(failureOf(error).sentence, `the database could not append: the disk is full; ${advice}`)
  })

  it("CL-132: what is not available and what is no Daybook is told with what to do", () => {
    const absent = new ProviderNotFound({ providerID: "openai", hint: "set OPENAI_API_KEY" })
    const chosen = "; daybook models lists what can be chosen with --model"
    assert.strictEqual(failureOf(absent).sentence, `provider "openai" is not available: set OPENAI_API_KEY${chosen}`)
    const refused = failureOf(new Unauthorized()).sentence
    assert.match(refused ?? "", / with a valid token; daybook token makes one, as the user that runs the server$/)
    const foreign = failureOf(new UnexpectedAnswer({ status: 404, details: "the body is not JSON" })).sentence
    assert.match(foreign ?? "", /: the body is not JSON; is its address the one that daybook serve prints\?$/)
  })

  it("CL-786: a disk without room is an error, with its folder and what is free", () => {
    const found = room(fileAt("/proc/daybook.sqlite"))
    assert.deepInclude(found, { about: "disk", verdict: "error", says: "the disk of /proc is full (0 B free)" })
  })

  it("CL-215: a branch on a running session is exit code 4, and a summary that fails is exit code 1", () => {
    assert.strictEqual(failureOf(new SessionBusy({ sessionID, ownerID: "own_a" })).code, 4)
    assert.strictEqual(failureOf(new BranchNotSummarized({ sessionID, details: "no" })).code, 1)
  })

  it.each([
    ["anthropic: api.anthropic.com answered HTTP 401: no", "; set ANTHROPIC_API_KEY to a key that it accepts"],
    ["openai: api.openai.com answered HTTP 401", "; set OPENAI_API_KEY to a key that it accepts"],
    ["anthropic: api.anthropic.com answered HTTP 403: no", "; the key in ANTHROPIC_API_KEY lacks permission"],
    ["openai: api.openai.com answered HTTP 403", "; the key in OPENAI_API_KEY lacks permission"],
    [
      "openai-compatible: host answered HTTP 403: not yours",
      "; the key in DAYBOOK_API_KEY (of the server at DAYBOOK_BASE_URL) lacks permission"
    ],
    ["openai: api.openai.com: the connection was refused (ECONNREFUSED)", ""],
    [
      "openai-compatible: host:1/v2/chat/completions answered HTTP 404 to a request for the model m: not found",
      "; choose a model that daybook models lists, and check DAYBOOK_BASE_URL"
    ],
    [
      "openai-compatible: host:1/chat/completions answered HTTP 404 to a request for the model m: not found",
      "; choose a model that daybook models lists, and check DAYBOOK_BASE_URL, which usually ends in /v1"
    ],
    [
      "anthropic: api.anthropic.com/v1/messages answered HTTP 404 to a request for the model claude-0: HTTP 401",
      "; choose a model that daybook models lists, and check ANTHROPIC_BASE_URL, if it is set"
    ],
    [
      "openai: api.openai.com/v1/responses answered HTTP 404: no",
      "; choose a model that daybook models lists, and check OPENAI_BASE_URL, if it is set"
    ],
    [
      "mine: host:1/chat/completions answered HTTP 404 to a request for the model m: not found",
      "; choose a model that daybook models lists, and check the provider's baseURL, which usually ends in /v1"
    ],
    ["mine: host answered HTTP 404", "; choose a model that daybook models lists"],
    ["openai: api.openai.com answered HTTP 500: HTTP 401", ""],
    ["mine: host answered HTTP 403", ""]
  ])("CL-132: %s%s", (message, advice) => {
    const { code, sentence } = failureOf(new ActivityFailed({ message, type: "provider" }))
    assert.deepStrictEqual([code, sentence], [5, `${message}${advice}`])
    // A resumption fails with the error itself, not with what the log says of it.
    const [providerID = "", ...rest] = message.split(": ")
    const about = { sessionID, providerID, details: rest.join(": "), retryable: false, overflow: false, partial: false }
    assert.deepStrictEqual(failureOf(new ProviderFailed(about)), { code, sentence })
  })

  it.each([
    ["answer.cut", 7],
    ["answer.filtered", 8],
    ["answer.refused", 9],
    ["answer.empty", 10]
  ])("CL-620: an activity that ended with %s has the exit code %i", (type, code) => {
    const message = "The model did not answer."
    assert.deepStrictEqual(failureOf(new ActivityFailed({ message, type })), { code, sentence: message })
  })

  it("MD-70, MD-36: every variable that cannot be used is named", () => {
    const one = ConfigError.InvalidData(["DAYBOOK_BASE_URL"], "it is not an http or https address")
    const other = ConfigError.MissingData(["DAYBOOK", "X"], "it is missing")
    const { code, sentence } = failureOf(ConfigError.And(one, other))
    assert.deepStrictEqual(
      [code, sentence],
      [2, "DAYBOOK_BASE_URL: it is not an http or https address; DAYBOOK_X: it is missing"]
    )
  })

  it("CL-41: the sentence is one line without escape sequences, whatever the error says", () => {
    const { sentence } = failureOf(new UsageError({ message: "two\nlines \u001b[31m" }))
    assert.strictEqual(sentence, "two lines ␛[31m")
  })

  it("CL-42: what nobody foresaw is told as such, with exit code 70", () => {
    const defect = failureOfCause(Cause.die(new Error("boom")))
    assert.strictEqual(defect.code, 70)
    assert.include(defect.sentence, "boom")
    assert.strictEqual(failureOf({ _tag: "SomethingNew", message: "x" }).code, 70)
  })

  it("CL-9: a current folder that is gone is said, wherever it is noticed", () => {
    const gone = Object.assign(new Error("ENOENT: process.cwd failed"), { code: "ENOENT", syscall: "uv_cwd" })
    const { code, sentence } = failureOfCause(Cause.die(gone))
    assert.deepStrictEqual([code, sentence], [2, "the current folder no longer exists; change to another folder"])
  })

  it("CL-39: nothing is said when nobody reads", () => {
    assert.deepStrictEqual(failureOf(new OutputClosed()), { code: 0, sentence: undefined })
    assert.deepStrictEqual(failureOf(new Interrupted({ message: "" })), { code: 130, sentence: undefined })
  })
})
