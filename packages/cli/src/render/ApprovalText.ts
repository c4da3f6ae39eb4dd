/** Renders saved approvals and decisions as lines. Pure. Spec: CL-170..CL-172 in specs/cli.md. */
import type { PermissionEvent, SavedApproval } from "@daybook/core/permission/PermissionStore"
import { columns, dateTime, oneLine } from "./Plain.ts"

const day = (at: number | undefined): string => (at === undefined ? "never" : dateTime(at))

const uses = ({ uses: count, usedAt }: SavedApproval): string =>
  count === 0 ? "not used" : `used ${count} times, last ${day(usedAt)}`

const user = (uid: number | undefined): string => (uid === undefined ? "" : `user ${uid}`)

/** Approvals in columns: number, time, user, session, uses, permission, pattern, and with `folders` the folder. */
export const approvalTable = (approvals: ReadonlyArray<SavedApproval>, folders: boolean): string =>
  columns(
    approvals.map((approval) => [
      String(approval.number),
      dateTime(approval.savedAt),
      user(approval.uid) || "-",
      approval.sessionID ?? "-",
      oneLine(approval.agent ?? "-", 32),
      uses(approval),
      oneLine(approval.permission, 64),
      oneLine(approval.resource, 200),
      ...(folders ? [oneLine(approval.folder, 200)] : [])
    ])
  )

const numbers = (what: string, list: ReadonlyArray<number> | undefined): string =>
  list === undefined || list.length === 0 ? "" : `${what} ${list.join(", ")}`

const described = (event: PermissionEvent): ReadonlyArray<string> => {
  if (event.type === "session.next.permission.revoked") {
    const { number, permission, resource, uid } = event.data
    return ["revoked", oneLine(permission, 64), oneLine(resource, 200), numbers("approval", [number]), user(uid)]
  }
  const { decision, patterns = [], permission, resources, saved, uid, used } = event.data
  return [
    decision,
    oneLine(permission, 64),
    oneLine(resources.join(" | "), 200),
    [
      patterns.length === 0 ? "" : `keeps ${oneLine(patterns.join(" | "), 200)}`,
      numbers("saved as", saved),
      numbers("by approval", used)
    ]
      .filter((part) => part !== "")
      .join(", "),
    user(uid)
  ]
}

/** Decisions in columns: time, session, decision, permission, resources, approvals, user. */
export const decisionTable = (events: ReadonlyArray<PermissionEvent>): string =>
  columns(events.map((event) => [dateTime(event.created), event.sessionID, ...described(event)]))
