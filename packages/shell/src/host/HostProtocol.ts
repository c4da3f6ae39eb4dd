/**
 * What a host of live shells answers on its socket: the calls, their schemas and their errors. `HostServer.ts` answers,
 * `HostClient.ts` asks. Spec: SL-170..SL-179 in specs/shell.md.
 */
import { StringDecoder } from "node:string_decoder"
import * as Rpc from "@effect/rpc/Rpc"
import * as RpcGroup from "@effect/rpc/RpcGroup"
import * as RpcSerialization from "@effect/rpc/RpcSerialization"
import { Data, Layer, Schema } from "effect"
import { ListedShell } from "../Shells.ts"
import { Checkpoint, Checkpointed, CheckpointFailed, CheckpointNotFound, Restored } from "../checkpoint/Checkpoints.ts"
import { Budget, ExecResult } from "../domain/ExecResult.ts"
import {
  CommandBlocked,
  InvalidOption,
  ShellClosed,
  ShellLimit,
  ShellNotFound,
  TransportFailed
} from "../domain/ShellError.ts"
import { Target } from "../domain/Target.ts"
import { OutputStream } from "../output/OutputStore.ts"
import { ShellLists } from "../policy/Policy.ts"
import { ShellRecordFailed } from "../record/ShellRecord.ts"
import { optional } from "@daybook/log/support/Optional"

// Messages on the host's socket: lines of JSON. The library decodes each chunk alone, and would lose a character that
// two chunks share.

/** Characters of a message to the host: a command of the longest length, in which each character is escaped, fits. */
const toHost = 8 * 1024 * 1024
/** Characters of a message to a client: the largest result that a budget allows fits. */
const toClient = 256 * 1024 * 1024

/** A message is too long. The library ends the connection for an error with this tag. */
class TooLong extends Data.TaggedError("RpcSerializationError")<{ readonly longest: number }> {
  override get message() {
    return `a message has more than ${this.longest} characters`
  }
}

const encode = (message: unknown): string | undefined => {
  const messages: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
  return messages.length === 0 ? undefined : messages.map((each) => `${JSON.stringify(each)}\n`).join("")
}

/** Gives whole lines. After a line that is too long it takes nothing more. */
const makeDecode = (longest: number) => {
  const decoder = new StringDecoder("utf8")
  let parts: Array<string> = []
  let length = 0
  let failed = false
  const add = (part: string) => {
    length += part.length
    parts.push(part)
    if (length <= longest) return
    failed = true
    parts = []
    throw new TooLong({ longest })
  }
  return (data: Uint8Array | string): ReadonlyArray<unknown> => {
    if (failed) return []
    const [first = "", ...rest] = (typeof data === "string" ? data : decoder.write(Buffer.from(data))).split("\n")
    add(first)
    return rest.map((next) => {
      const line = parts.join("")
      parts = []
      length = 0
      add(next)
      return JSON.parse(line)
    })
  }
}

const layer = (longest: number) =>
  Layer.succeed(
    RpcSerialization.RpcSerialization,
    RpcSerialization.RpcSerialization.of({
      contentType: "application/ndjson",
      includesFraming: true,
      unsafeMake: () => ({ encode, decode: makeDecode(longest) })
    })
  )

export const layerHost = layer(toHost)
export const layerClient = layer(toClient)

/** The host is ending and starts nothing new: another one can be started. */
export class HostEnding extends Schema.TaggedError<HostEnding>("@daybook/shell/HostEnding")("HostEnding", {}) {
  override get message() {
    return "the host of the shells is ending: try again"
  }
}

/** The host does as much as it does at the same time. Nothing was started. */
export class HostBusy extends Schema.TaggedError<HostBusy>("@daybook/shell/HostBusy")("HostBusy", {
  limit: Schema.Int
}) {
  override get message() {
    return `${this.limit} calls run or wait in the host of the shells, which is the limit: wait for one`
  }
}

/** What the host says of itself. Every version answers this call in this form. */
export const Hello = Schema.Struct({
  version: Schema.String,
  pid: Schema.Int,
  /** Where it records; `:memory:` if nowhere that lasts. */
  database: Schema.String
})
export type Hello = typeof Hello.Type

export const CreateRequest = Schema.Struct({
  target: Target,
  lists: optional(ShellLists),
  workspace: optional(Schema.String),
  checkpoints: optional(Schema.Boolean),
  autoSnapshot: optional(Schema.Boolean),
  checkpointIgnores: optional(Schema.Array(Schema.String))
})
export type CreateRequest = typeof CreateRequest.Type

/** Names a call to `exec`, so that other calls can stop it and send it input. The caller makes it up. */
const Call = Schema.String.pipe(Schema.pattern(/^[0-9a-f-]{1,64}$/))

export const ExecRequest = Schema.Struct({
  call: Call,
  id: Schema.String,
  command: Schema.String,
  budget: optional(Budget),
  timeoutSeconds: optional(Schema.Number),
  /** The call `input` sends the command's standard input; it is empty by default. */
  interactive: optional(Schema.Boolean),
  /** Sends what the command prints while it runs, the whole of it. */
  live: optional(Schema.Boolean)
})
export type ExecRequest = typeof ExecRequest.Type

/** The first news: from now on the call can be stopped, and takes input. */
export const Begun = Schema.TaggedStruct("Begun", {})

/** Output of a running command. */
export const Printed = Schema.TaggedStruct("Printed", { stream: OutputStream, text: Schema.String })
export type Printed = typeof Printed.Type

/** The end of a command; nothing follows. */
export const Ended = Schema.TaggedStruct("Ended", { result: ExecResult })
export type Ended = typeof Ended.Type

export const ExecNews = Schema.Union(Begun, Printed, Ended)
export type ExecNews = typeof ExecNews.Type

export const CreateError = Schema.Union(
  InvalidOption,
  ShellLimit,
  TransportFailed,
  ShellRecordFailed,
  HostEnding,
  HostBusy
)
export const ExecError = Schema.Union(
  InvalidOption,
  ShellNotFound,
  ShellClosed,
  CommandBlocked,
  TransportFailed,
  ShellRecordFailed,
  HostBusy
)
export const CheckpointError = Schema.Union(
  InvalidOption,
  ShellNotFound,
  ShellClosed,
  CheckpointFailed,
  CheckpointNotFound,
  TransportFailed,
  ShellRecordFailed,
  HostBusy
)

export const ShellRpcs = RpcGroup.make(
  Rpc.make("hello", { success: Hello }),
  Rpc.make("create", { payload: CreateRequest.fields, success: Schema.String, error: CreateError }),
  /** Its interruption, and the end of the connection, stop the command. */
  Rpc.make("exec", { payload: ExecRequest.fields, success: ExecNews, error: ExecError, stream: true }),
  /** Stops the command of a call, whose exit code is 130 then. Nothing happens if there is none. */
  Rpc.make("stop", { payload: { call: Call } }),
  /** Sends text to the command of a call, and completes when the command takes it; `end` closes its input. */
  Rpc.make("input", { payload: { call: Call, text: Schema.String, end: Schema.Boolean } }),
  Rpc.make("list", { success: Schema.Array(ListedShell) }),
  Rpc.make("destroy", { payload: { id: Schema.String }, success: Schema.Boolean }),
  Rpc.make("checkpoint", {
    payload: { id: Schema.String, label: optional(Schema.String) },
    success: Checkpointed,
    error: CheckpointError
  }),
  Rpc.make("checkpoints", {
    payload: { id: Schema.String },
    success: Schema.Array(Checkpoint),
    error: CheckpointError
  }),
  Rpc.make("restore", {
    payload: { id: Schema.String, checkpointID: optional(Schema.String) },
    success: Restored,
    error: CheckpointError
  })
)
