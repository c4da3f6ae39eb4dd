/** `daybook permissions`: lists, revokes and audits saved approvals. Spec: CL-170..CL-172. */
import { Effect } from "effect"
import { type PermissionEvent, PermissionStore, type SavedApproval } from "@daybook/core/permission/PermissionStore"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { withSessions } from "../host/Runtime.ts"
import { eventJson } from "../render/EventLine.ts"
import { columns, dateTime, oneLine } from "../render/Plain.ts"
import { NotFound, UsageError } from "../support/Errors.ts"
import { Output, writeJson } from "../terminal/Output.ts"
import * as Question from "../terminal/Question.ts"

const day = (at: number | undefined): string => (at === undefined ? "never" : dateTime(at))

const uses = ({ uses: count, usedAt }: SavedApproval): string =>
  count === 0 ? "not used" : `used ${count} times, last ${day(usedAt)}`

const user = (uid: number | undefined): string => (uid === undefined ? "" : `user ${uid}`)

/** Approvals in columns: number, time, user, session, uses, permission, pattern, and with `folders` the folder. */
const approvalTable = (approvals: ReadonlyArray<SavedApproval>, folders: boolean): string =>
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
const decisionTable = (events: ReadonlyArray<PermissionEvent>): string =>
  columns(events.map((event) => [dateTime(event.created), event.sessionID, ...described(event)]))

const given = {
  action: Flags.optional("ACTION"),
  words: Flags.many("WORD"),
  all: Flags.toggle("all", "all folders, not only this one"),
  yes: Flags.toggle("yes", "do not ask"),
  limit: Flags.integer("limit", "N", "audit: at most the last N decisions (default: 50)", 1),
  json: Flags.json
}

type Options = FieldValues<typeof given>

/** The approvals that are valid here; with `all`, in every folder. Revoked ones are left out. */
const valid = Effect.fnUntraced(function* (everywhere: boolean) {
  const store = yield* PermissionStore
  if (!everywhere) return yield* store.list(yield* Folder.current)
  return (yield* store.listAll).filter(({ revokedAt }) => revokedAt === undefined)
})

const list = Effect.fn("Command.permissions.list")(function* ({ all, json }: Options) {
  const output = yield* Output
  const approvals = yield* valid(all)
  yield* json ? writeJson(...approvals) : output.write(approvalTable(approvals, all))
  if (approvals.length === 0) {
    yield* output.note(all ? "no saved approvals\n" : "no saved approvals in this folder\n")
  }
})

/** A number matches one approval; other words match its permission, its pattern, or both. */
const isNamed = (word: string, { number, permission, resource }: SavedApproval): boolean =>
  /^\d+$/.test(word) ? Number(word) === number : [permission, resource, `${permission} ${resource}`].includes(word)

const revoke = Effect.fn("Command.permissions.revoke")(function* ({ all, json, words, yes }: Options) {
  const output = yield* Output
  if (words.length === 0) {
    return yield* new UsageError({
      message: "nothing to revoke: give numbers or patterns from daybook permissions list"
    })
  }
  const approvals = yield* valid(all)
  const missing = words.find((word) => !approvals.some((approval) => isNamed(word, approval)))
  if (missing !== undefined) {
    const where = all ? "" : " in this folder; --all looks in every folder"
    return yield* new NotFound({ message: `approval "${oneLine(missing, 80)}" does not exist${where}` })
  }
  const chosen = approvals.filter((approval) => words.some((word) => isNamed(word, approval)))
  if (!yes) {
    yield* output.note(approvalTable(chosen, all))
    yield* Question.confirm(`Revoke ${chosen.length === 1 ? "it" : `these ${chosen.length}`}?`, {
      unasked: "nothing was revoked; give --yes to confirm without a terminal",
      declined: "nothing was revoked"
    })
  }
  const store = yield* PermissionStore
  const revoked = yield* store.revoke(chosen.map(({ number }) => number))
  yield* json ? writeJson(...revoked) : output.note(`revoked: ${revoked.map(({ number }) => number).join(", ")}\n`)
})

const audit = Effect.fn("Command.permissions.audit")(function* ({ all, json, limit }: Options) {
  const output = yield* Output
  const store = yield* PermissionStore
  const folder = all ? {} : { folder: yield* Folder.current }
  const events = yield* store.decisions({ ...folder, limit: limit ?? 50 })
  yield* output.write(
    json ? events.map((event) => `${eventJson(event, output.terminal)}\n`).join("") : decisionTable(events)
  )
  if (events.length === 0) yield* output.note("no decisions yet\n")
})

const run = (options: Options) => {
  const { action = "list", words } = options
  if (action === "revoke") return revoke(options)
  if (words.length > 0) {
    return Effect.fail(new UsageError({ message: `permissions ${oneLine(action, 40)} takes no arguments` }))
  }
  if (action === "list") return list(options)
  if (action === "audit") return audit(options)
  return Effect.fail(
    new UsageError({ message: `unknown action "permissions ${oneLine(action, 40)}"; use list, revoke or audit` })
  )
}

export const permissions = verb({
  name: "permissions",
  summary: "list, revoke or audit saved approvals",
  words: "[list|revoke|audit] [NUMBER|PATTERN...]",
  details: [
    'list shows the answers "always" that are valid in this folder: number, time, user, session, agent, number of uses, ' +
      "permission, pattern. An approval of an MCP tool is valid until the tool or its server changes.",
    "revoke withdraws approvals by number, permission or pattern, and asks first. Running sessions ask again from then on. " +
      "audit shows the last decisions on calls, the oldest first, with the approvals that were saved and used. Rules of " +
      "agents are not listed."
  ],
  given,
  examples: [
    ["daybook permissions", "the saved approvals of this folder"],
    ["daybook permissions revoke 3 7", "revokes two of them"],
    ['daybook permissions revoke "npm test" --yes', "revokes that pattern without asking"],
    ["daybook permissions audit --all --json", "the last decisions in all folders, as JSON"]
  ],
  run: (options) => withSessions(run(options))
})
