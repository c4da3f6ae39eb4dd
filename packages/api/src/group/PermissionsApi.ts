/** Tools that wait for a person's permission. Spec: HT-37 in specs/http.md. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { PermissionSubject } from "@daybook/core/permission/PermissionSubject"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { Location } from "@daybook/log/domain/Values"
import { Administering, Reading } from "../wire/Access.ts"
import { failures } from "../wire/Failure.ts"
import { strict, bySession } from "./Shared.ts"

/** A permission that a call waits for. A person must see all of it. */
export const OpenPermission = Schema.Struct({
  /** Names it in an answer. */
  ask: Schema.String,
  sessionID: SessionID,
  sessionTitle: Schema.optionalWith(Schema.String, { exact: true }),
  callID: Schema.String,
  tool: Schema.String,
  agent: Schema.String,
  location: Location,
  /** The action: `edit`, `bash`, `external_directory` and so on. */
  permission: Schema.String,
  resources: Schema.NonEmptyArray(Schema.String),
  /** The action in a line; `subject` describes it completely. */
  title: Schema.String,
  subject: PermissionSubject,
  notes: Schema.Array(Schema.String),
  /** The patterns that `session` and `always` keep; empty: it can be given for one call only. */
  always: Schema.Array(Schema.String),
  /** Milliseconds since the epoch. */
  askedAt: Schema.Int,
  /** Milliseconds until it is refused without an answer; absent: it waits without a limit. */
  timeLeftMs: Schema.optionalWith(Schema.NonNegativeInt, { exact: true })
}).annotations({ identifier: "OpenPermission" })
export type OpenPermission = typeof OpenPermission.Type

/** `correct` refuses with a message for the model, and the run goes on; `decline` stops the run. */
export const Decision = Schema.Union(
  Schema.Struct({ decision: Schema.Literal("once", "session", "decline") }),
  Schema.Struct({
    decision: Schema.Literal("always"),
    /** Other patterns than the permission's. */
    resources: Schema.optionalWith(
      Schema.Array(Schema.String.pipe(Schema.maxLength(1_000))).pipe(Schema.maxItems(100)),
      {
        exact: true
      }
    )
  }),
  Schema.Struct({
    decision: Schema.Literal("correct"),
    message: Schema.NonEmptyString.pipe(Schema.maxLength(10_000))
  })
)
export type Decision = typeof Decision.Type

/** The permission was decided before, or its call has ended. */
export class PermissionClosed extends Schema.TaggedError<PermissionClosed>("@daybook/api/PermissionClosed")(
  "PermissionClosed",
  {
    ask: Schema.String,
    /** The decision that counts, if it is known. */
    decision: Schema.optionalWith(Schema.String, { exact: true })
  }
) {
  override get message() {
    const how = this.decision === undefined ? "" : ` (${this.decision})`
    return `no call waits for this permission${how}: it was decided before, or the call has ended`
  }
}

/** Open permissions, and their answers. */
export const PermissionsApi = HttpApiGroup.make("permissions")
  .annotate(OpenApi.Description, "Decide whether tools may act. Permissions wait in memory: they are not events.")
  .add(
    HttpApiEndpoint.get("permissions", "/sessions/:sessionID/permissions")
      .setPath(bySession)
      .addSuccess(Schema.Array(OpenPermission))
      .middleware(Reading)
  )
  .add(
    HttpApiEndpoint.get("allPermissions", "/permissions").addSuccess(Schema.Array(OpenPermission)).middleware(Reading)
  )
  .add(
    HttpApiEndpoint.post("decide", "/sessions/:sessionID/permissions/:ask")
      .setPath(Schema.Struct({ ...bySession.fields, ask: Schema.String }))
      .setPayload(strict(Decision))
      .addError(failures(Schema.Union(InvalidInput, PermissionClosed)))
      .middleware(Administering)
  )
