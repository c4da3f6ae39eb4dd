/** A call's request for permission, and how its resources are named and guarded. Pure. */
import type { Effect } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Agent } from "../domain/Agent.ts"
import type { Approval, Rule, Verdict } from "../domain/Rule.ts"
import { ToolFailure } from "../domain/ToolError.ts"
import type { PermissionSubject } from "./PermissionSubject.ts"
import { guardsOf } from "./ProtectedPaths.ts"

/** A call's request for permission. */
export interface Authorization {
  readonly sessionID: SessionID
  readonly messageID: MessageID
  readonly callID: string
  readonly agent: Agent
  /** The action's name: `read`, `edit`, `bash`, `external_directory` and so on. */
  readonly permission: string
  /** The resources of the call; each must be allowed. */
  readonly resources: NonEmptyReadonlyArray<string>
  /** The call runs in a sandbox and the host allows sandboxed calls: no question is asked. */
  readonly confined?: boolean
  /** The call's spelling of a resource that it reached through links; a protected name in the spelling counts too. */
  readonly spelled?: ReadonlyMap<string, string>
  /** One line for the question. */
  readonly title: string
  /** The tool's name; the permission's name by default. */
  readonly tool?: string
  /** The complete action; computed only when a person is asked. */
  readonly subject?: Effect.Effect<PermissionSubject>
  /** Resource patterns that the answer "always" saves for the project; by default exactly the resources. */
  readonly always?: ReadonlyArray<string>
  /** Computes the verdict on the call, instead of matching each resource. */
  readonly verdict?: (rules: ReadonlyArray<Rule>, approvals: ReadonlyArray<Approval>) => Verdict
  /** Why the call is asked about, if the call alone does not show it. */
  readonly because?: (rules: ReadonlyArray<Rule>, approvals: ReadonlyArray<Approval>) => ReadonlyArray<string>
  /** The fingerprint of what would run: an approval saved under another fingerprint does not count (PM-40). */
  readonly definition?: string
}

/** Refuses a call; the model reads the message, and the run continues. */
export const denied = (message: string) => new ToolFailure({ type: "permission.denied", message })

/** A resource as a sentence shows it. */
export const quoted = (resource: string) =>
  JSON.stringify(resource.length <= 500 ? resource : `${resource.slice(0, 500)}...`)

/** A call's action and resources as a sentence shows them. */
export const named = (request: Pick<Authorization, "permission" | "resources">) =>
  `"${request.permission}" on ${request.resources.slice(0, 5).map(quoted).join(", ")}` +
  (request.resources.length > 5 ? ` and ${request.resources.length - 5} more` : "")

/** The guards of a call's resource, under its canonical name and the call's spelling. */
export const guardsIn = ({ permission, spelled }: Authorization, resource: string) => {
  const other = spelled?.get(resource)
  return [...guardsOf(permission, resource), ...(other === undefined ? [] : guardsOf(permission, other))]
}
