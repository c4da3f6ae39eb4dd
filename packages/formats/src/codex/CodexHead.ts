/** Makes the head of a rollout from its first records. Pure. Spec: FM-157 in specs/formats.md. */
import { Option, Predicate, Schema } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { Head } from "../conversation/Conversation.ts"
import { timeOf } from "../reading/Tolerant.ts"
import { contentOf, textOf } from "./CodexContent.ts"
import { folderOf } from "./CodexPrompt.ts"
import { type CodexRecord, decode } from "./CodexRecord.ts"

const Spawned = Schema.Struct({
  subagent: Schema.Struct({ thread_spawn: Schema.Struct({ parent_thread_id: Schema.NonEmptyString }) })
})
const decodeSpawned = Schema.decodeUnknownOption(Spawned)

/** The session that this one forked from, or whose agent started it. */
const parentOf = ({ payload }: CodexRecord): string | undefined =>
  payload.forked_from_id ??
  payload.parent_thread_id ??
  Option.getOrUndefined(
    Option.map(decodeSpawned(payload.source), ({ subagent }) => subagent.thread_spawn.parent_thread_id)
  )

/** The id and time in a rollout's file name; older names have only the day. */
const named = (name: string | undefined) => {
  const [, date, hours = "00", minutes = "00", seconds = "00", id] =
    /^rollout-(\d{4}-\d\d-\d\d)(?:T(\d\d)-(\d\d)-(\d\d))?-([0-9A-Za-z-]+)$/.exec(name ?? "") ?? []
  return id === undefined ? undefined : { id, time: timeOf(`${date}T${hours}:${minutes}:${seconds}Z`) }
}

/** The folder that a user message names, or false if the record is one after which none is named. */
const folderIn = ({ payload, type }: CodexRecord): string | false | undefined => {
  if (payload.cwd !== undefined) return payload.cwd
  if (type !== "response_item") return undefined
  return payload.role === "user" ? folderOf(textOf(contentOf(payload.content))) : false
}

/** The head; undefined if a later record may say more. Older headers have no folder: an early message names it. */
export const headOf = (early: ReadonlyArray<JsonRecord>, name: string | undefined, last: boolean): Head | undefined => {
  const records = early.map(decode)
  const at = records.findIndex(({ payload, type }) => type === "session_meta" && payload.id !== undefined)
  const header = records[at]
  const fromName = named(name)
  const id = header?.payload.id ?? (last ? fromName?.id : undefined)
  if (id === undefined) return undefined
  const folders = records.map(folderIn)
  const cwd = folders.find(Predicate.isString)
  if (cwd === undefined && !last && !folders.includes(false)) return undefined
  const time = timeOf(header?.payload.timestamp ?? header?.timestamp) ?? fromName?.time
  const parent = header === undefined ? undefined : parentOf(header)
  return {
    _tag: "Head",
    dialect: "codex",
    id,
    ...(cwd === undefined ? {} : { cwd }),
    createdAt: time ?? timeOf(records.find(({ timestamp }) => timestamp !== undefined)?.timestamp) ?? 0,
    ...(parent === undefined || parent === id ? {} : { parent }),
    record: early[at] ?? {}
  }
}
