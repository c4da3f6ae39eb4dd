/** Derives ids from a foreign log, so that the same log always becomes the same session. Pure. Spec: IM-2. */
import { createHash } from "node:crypto"
import { ActivityID, MessageID, PartID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Dialect } from "../conversation/Dialect.ts"

const hashed = (parts: ReadonlyArray<string>): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 26)

const unchecked = { disableValidation: true } as const

/** The entry logs of one family share their ids. */
const family = (dialect: Dialect): string => (dialect === "xcsh" || dialect === "omp" ? "pi" : dialect)

/** The session of a log; `copy` tells sessions apart that were imported from one log as new ones. */
export const sessionIDOf = (dialect: Dialect, id: string, copy?: string): SessionID =>
  SessionID.make(`ses_${hashed([family(dialect), id, ...(copy === undefined ? [] : [copy])])}`, unchecked)

/** The message of a record. */
export const messageIDOf = (sessionID: SessionID, key: string): MessageID =>
  MessageID.make(`msg_${hashed([sessionID, key])}`, unchecked)

const suffix = (messageID: MessageID): string => messageID.slice("msg_".length)

/** A text or reasoning of a message. */
export const partIDOf = (messageID: MessageID, index: number): PartID =>
  PartID.make(`prt_${suffix(messageID)}.${index}`, unchecked)

/** The activity that a message opens. */
export const activityIDOf = (messageID: MessageID): ActivityID => ActivityID.make(`act_${suffix(messageID)}`, unchecked)

/** The call of a command that a person ran. */
export const shellCallOf = (messageID: MessageID): string => `call_${suffix(messageID)}`
