/** Endpoints of the same shape: reading a session, changing it, and taking back its work. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import { Schema, Struct } from "effect"
import { Undone, UndoOptions } from "@daybook/core/session/SessionOptions"
import { SnapshotUnavailable } from "@daybook/core/snapshot/SnapshotError"
import { SessionBusy } from "@daybook/log/domain/SessionBusy"
import { EventUnreadable } from "@daybook/log/log/EventLog"
import { Prompting, Reading } from "../wire/Access.ts"
import { failures } from "../wire/Failure.ts"
import { strict, bySession, ChangeFailure, ReadFailure } from "./Shared.ts"

type Path = `/sessions/:sessionID${string}`

/** Reads something of a session. */
export const reads = <const Name extends string, A, I>(name: Name, path: Path, found: Schema.Schema<A, I>) =>
  HttpApiEndpoint.get(name, path).setPath(bySession).addSuccess(found).addError(ReadFailure).middleware(Reading)

/** Changes a field of a session. Who may do it, and further errors, are added. */
export const changes = <const Name extends string, A, I>(name: Name, path: Path, payload: Schema.Schema<A, I>) =>
  HttpApiEndpoint.put(name, path).setPath(bySession).setPayload(strict(payload)).addError(ChangeFailure)

/** Has an effect on a session. Results, further errors, and who may do it, are added. */
export const acts = <const Name extends string>(name: Name, path: Path) =>
  HttpApiEndpoint.post(name, path).setPath(bySession).addError(ChangeFailure)

const restoring = failures(Schema.Union(SnapshotUnavailable, SessionBusy, EventUnreadable))

/** Takes back work of a session, or an undo. */
export const restores = <const Name extends string>(name: Name, path: Path) =>
  acts(name, path)
    .setPayload(strict(Schema.Struct(Struct.omit(UndoOptions.fields, "sessionID"))))
    .addSuccess(Undone)
    .addError(restoring)
    .middleware(Prompting)
