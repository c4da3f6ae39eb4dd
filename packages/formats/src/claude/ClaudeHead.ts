/** Makes the head of a Claude Code log from its first records. Pure. Spec: FM-139 in specs/formats.md. */
import type { Head } from "../conversation/Conversation.ts"
import { timeOf } from "../reading/Tolerant.ts"
import type { ClaudeRecord } from "./ClaudeRecord.ts"

const isUuid = (text: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

/** The log is a subagent's: it consists of a side chain. */
export const isSubagent = (first: ClaudeRecord): boolean => first.isSidechain === true

/**
 * The head, from the first record with an id. `name` is the file's name without its ending: a session's file is named
 * after it, and may begin with records of the session that it continues.
 */
export const headOf = (first: ClaudeRecord, name: string | undefined): Head | undefined => {
  const own = name !== undefined && isUuid(name) && !isSubagent(first) ? name : undefined
  const session = own ?? first.sessionId
  if (session === undefined) return undefined
  const { agentId, cwd, forkedFrom, gitBranch, sessionId, version } = first
  const id = isSubagent(first) ? `${session}/${agentId ?? name ?? "subagent"}` : session
  const parent = isSubagent(first)
    ? session
    : (forkedFrom?.sessionId ?? (sessionId === session ? undefined : sessionId))
  return {
    _tag: "Head",
    dialect: "claude-code",
    id,
    ...(cwd === undefined ? {} : { cwd }),
    createdAt: timeOf(first.timestamp) ?? 0,
    ...(parent === undefined || parent === id ? {} : { parent }),
    record: JSON.parse(JSON.stringify({ sessionId, agentId, cwd, gitBranch, version }))
  }
}
