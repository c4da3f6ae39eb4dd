/**
 * Decides whether a call may do what it is about to do: the agent's rules, then what the project's people saved, then
 * a question. Owns the order of questions of a session; leaves asking and remembering to `PermissionAsker` and
 * `PermissionStore`. Location-scoped. Spec: PM-1..PM-6, PM-20, PM-21, PP-1..PP-6, TO-4, TO-5.
 */
import { Context, Effect, Layer, Option } from "effect"
import { isNonEmptyReadonlyArray, type NonEmptyReadonlyArray } from "effect/Array"
import type { Agent } from "../agent/Agents.ts"
import type { SessionID } from "../Identifiers.ts"
import { CurrentLocation } from "../session/CurrentLocation.ts"
import { SessionStore } from "../session/SessionStore.ts"
import { makeKeyedLock } from "../tool/KeyedLock.ts"
import { ToolDeclined, ToolFailure } from "../tool/ToolDefinition.ts"
import { Answer, PermissionAsker } from "./PermissionAsker.ts"
import { PermissionStore } from "./PermissionStore.ts"
import type { PermissionSubject } from "./PermissionSubject.ts"
import { describeGuards, guardsOf, namesGuards } from "./ProtectedPaths.ts"
import { applies, decidingRule, literal, type Approval, type Rule, type Verdict } from "./Rule.ts"
import * as SessionApprovals from "./SessionApprovals.ts"

/** What a call wants to do. */
export interface Authorization {
  readonly sessionID: SessionID
  readonly callID: string
  readonly agent: Agent
  /** The action's name: `read`, `edit`, `bash`, `external_directory` and so on. */
  readonly permission: string
  /** What it acts on; every one of them has to be allowed. */
  readonly resources: NonEmptyReadonlyArray<string>
  /** How the call spelled a resource that it reached through links; a protected name on that way counts too. */
  readonly spelled?: ReadonlyMap<string, string>
  /** One line for the person who is asked. */
  readonly title: string
  /** The tool's name; that of the permission by default. */
  readonly tool?: string
  /** All of what would be done; made only when a person is asked. */
  readonly subject?: Effect.Effect<PermissionSubject>
  /** Resource patterns that the answer "always" saves for the project; exactly the resources by default. */
  readonly always?: ReadonlyArray<string>
  /** The verdict of rules and saved approvals on the call, where it is not that of matching each resource. */
  readonly verdict?: (rules: ReadonlyArray<Rule>, approvals: ReadonlyArray<Approval>) => Verdict
}

export class Permission extends Context.Tag("@daybook/core/Permission")<
  Permission,
  {
    /**
     * Succeeds when every resource is allowed. `ToolFailure` `permission.denied`: a rule, a person with a correction,
     * or nobody to ask; the model reads why and goes on. `ToolDeclined`: a person stopped the run.
     */
    readonly authorize: (request: Authorization) => Effect.Effect<void, ToolFailure | ToolDeclined>
  }
>() {}

const denied = (message: string) => new ToolFailure({ type: "permission.denied", message })

const quoted = (resource: string) => JSON.stringify(resource.length <= 500 ? resource : `${resource.slice(0, 500)}...`)

const named = (request: Pick<Authorization, "permission" | "resources">) =>
  `"${request.permission}" on ${request.resources.slice(0, 5).map(quoted).join(", ")}` +
  (request.resources.length > 5 ? ` and ${request.resources.length - 5} more` : "")

/** What protects a resource of a call, under its own name and the one that the call used. */
const guardsIn = ({ permission, spelled }: Authorization, resource: string) => {
  const other = spelled?.get(resource)
  return [...guardsOf(permission, resource), ...(other === undefined ? [] : guardsOf(permission, other))]
}

/** What the rules say, and the saved approvals where the rules ask. */
const verdictOn = (request: Authorization, resource: string, saved: ReadonlyArray<Approval>): Verdict => {
  const rules = request.agent.permissions
  if (request.verdict !== undefined) return request.verdict(rules, saved)
  const rule = decidingRule(rules, request.permission, resource)
  if (rule?.verdict === "deny") return "deny"
  const guards = guardsIn(request, resource)
  const given = [
    ...(rule?.verdict === "allow" ? [rule] : []),
    ...saved.filter((approval) => applies(approval, request.permission, resource))
  ]
  return given.some((each) => namesGuards(each.resource, resource, guards)) ? "allow" : "ask"
}

const make = Effect.gen(function* () {
  const location = yield* CurrentLocation
  const asker = yield* PermissionAsker
  const store = yield* PermissionStore
  // A host that builds this layer by itself has neither: its approvals then live as long as the layer.
  const approvals = Option.getOrElse(
    yield* Effect.serviceOption(SessionApprovals.SessionApprovals),
    SessionApprovals.make
  )
  const sessions = yield* Effect.serviceOption(SessionStore)
  const locked = makeKeyedLock<SessionID>()

  /** The resources that neither a rule nor a saved approval allows; fails when a rule denies one. */
  const unsettled = Effect.fnUntraced(function* (request: Authorization) {
    const open: Array<string> = []
    for (const resource of request.resources) {
      const verdict = verdictOn(request, resource, [])
      if (verdict === "deny") {
        const what = named({ permission: request.permission, resources: [resource] })
        return yield* denied(`the rules of agent "${request.agent.name}" do not allow ${what}. Find another way.`)
      }
      if (verdict !== "allow") open.push(resource)
    }
    if (open.length === 0) return open
    // Without the saved approvals a person is asked once more than needed: that is safe, so the call goes on.
    const saved = yield* Effect.catchAll(store.list(location.directory), (error) =>
      Effect.as(Effect.logWarning(error.message, error.cause), [])
    )
    const given = [...approvals.list(request.sessionID), ...saved]
    return open.filter((resource) => verdictOn(request, resource, given) !== "allow")
  })

  /** A question says whose it is also where the title cannot be read. */
  const titleOf = (sessionID: SessionID) =>
    Option.match(sessions, {
      onNone: () => Effect.succeed({}),
      onSome: (store) =>
        store.get(sessionID).pipe(
          Effect.map(({ title }) => (title === undefined ? {} : { sessionTitle: title })),
          Effect.orElseSucceed(() => ({}))
        )
    })

  const save = (permission: string, resources: ReadonlyArray<string>) =>
    Effect.catchAll(
      store.save(
        location.directory,
        resources.map((resource) => ({ permission, resource }))
      ),
      (error) => Effect.logWarning(error.message, error.cause)
    )

  const settle = (request: Authorization, resources: NonEmptyReadonlyArray<string>, always: ReadonlyArray<string>) =>
    Answer.$match({
      Once: () => Effect.void,
      Session: () =>
        Effect.sync(() =>
          approvals.add(
            request.sessionID,
            always.map((resource) => ({ permission: request.permission, resource }))
          )
        ),
      Always: () => save(request.permission, always),
      AlwaysFor: ({ resources }) => save(request.permission, resources),
      Decline: () => new ToolDeclined({ tool: request.permission }),
      Correct: ({ message }) =>
        denied(`the person refused ${named({ permission: request.permission, resources })} and says: ${message}`),
      Unavailable: () =>
        denied(
          `${named({ permission: request.permission, resources })} needs a person's approval, and nobody is here to ` +
            `give it. To allow it, run the session where questions can be answered, or give agent ` +
            `"${request.agent.name}" a rule with permission "${request.permission}", resource ` +
            `${quoted(always[0] ?? literal(resources[0]))} and verdict "allow".`
        )
    })

  return Permission.of({
    authorize: Effect.fn("Permission.authorize")(function* (request) {
      if ((yield* unsettled(request)).length === 0) return
      // An "always" to the question before may have settled this one, so it is looked at again with the lock held.
      yield* locked(request.sessionID)(
        Effect.gen(function* () {
          const resources = yield* unsettled(request)
          if (!isNonEmptyReadonlyArray(resources)) return
          const always = request.always ?? resources.map(literal)
          const {
            agent,
            callID,
            permission,
            sessionID,
            subject = Effect.succeed({ type: "call" } as const),
            tool = permission
          } = request
          const protection = describeGuards(resources.flatMap((resource) => guardsIn(request, resource)))
          const title = protection === "" ? request.title : `${request.title}\n${protection}`
          const asked = {
            sessionID,
            ...(yield* titleOf(sessionID)),
            callID,
            tool,
            agent: agent.name,
            location,
            permission,
            resources,
            title,
            subject: yield* subject,
            notes: protection === "" ? [] : [protection],
            always
          }
          yield* settle(request, resources, always)(yield* asker.ask(asked))
        })
      )
    })
  })
})

export const layer: Layer.Layer<Permission, never, CurrentLocation | PermissionAsker | PermissionStore> = Layer.effect(
  Permission,
  make
)
