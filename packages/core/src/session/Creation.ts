/**
 * Creates sessions, or finds the ones that exist: by id, by address, by title. Spec: CR-1, CR-2, AD-1..AD-7, IB-3,
 * IB-13, IB-44, CR-4, RQ-54.
 */
import { Effect, Option, Predicate, Schema } from "effect"
import { Identifiers, SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput, validate } from "@daybook/log/domain/InvalidInput"
import { TitleAmbiguous } from "@daybook/log/domain/Title"
import { type Location, ModelRef, SessionOrigin } from "@daybook/log/domain/Values"
import { draft, type Draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { plain } from "@daybook/log/projection/Change"
import { present } from "@daybook/log/support/Optional"
import { TitleTaken } from "@daybook/log/store/SessionChecks"
import { deepestFamily } from "@daybook/log/store/SessionRows"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { Agents } from "../agent/Agents.ts"
import { type Agent, canLead } from "../domain/Agent.ts"
import { ModelResolver } from "../model/ModelResolver.ts"
import { attempts } from "../support/Contested.ts"
import type { Locations, Placements } from "./Placement.ts"
import type { CreateOptions } from "./SessionOptions.ts"
import type { Sessions } from "./Sessions.ts"

/** The model, if the host can use it now. */
export const knownModel = Effect.fnUntraced(function* ({ resolve }: ModelResolver["Type"], asked: ModelRef) {
  const model = yield* validate("model", ModelRef, asked)
  yield* Effect.mapError(resolve(model), ({ message }) => new InvalidInput({ field: "model", details: message }))
  return model
})

/** The agent, if it may work here: as a primary agent, or for the parent session of a `child`. */
export const knownAgent = Effect.fnUntraced(function* (
  agents: Agents["Type"],
  agent: string,
  location: Location,
  child: boolean
) {
  const refuse = (details: string) => new InvalidInput({ field: "agent", details })
  const name = yield* validate("agent", Schema.String, agent)
  const found = yield* Effect.mapError(agents.get(name, location), ({ message }) => refuse(message))
  if (child || canLead(found)) return found
  return yield* refuse(`agent "${name}" is a subagent, which only other agents can start; choose another one`)
})

/** The reminders that both agents have for a switch. A missing agent has none (RQ-54). */
export const switchReminders = Effect.fnUntraced(function* (
  agents: Agents["Type"],
  current: string | undefined,
  to: Agent,
  location: Location
) {
  const from = Option.getOrUndefined(yield* Effect.option(agents.get(current, location)))
  return from?.name === to.name ? [] : [from?.leaveReminder, to.enterReminder].filter(Predicate.isNotUndefined)
})

// Finds a session by its title, or creates one; of concurrent callers the first commit wins.

/** Another caller created a session with the title first: look again. */
const isTaken = (error: unknown): error is TitleTaken => error instanceof TitleTaken

const makeTitles = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* SessionStore

  /** The only session with the title in the folder, else the only one anywhere. */
  const find = Effect.fnUntraced(function* (title: string, directory: string) {
    const here = yield* store.titled(title, { directory })
    const found = here.length > 0 ? here : yield* store.titled(title)
    if (found.length > 1) return yield* new TitleAmbiguous({ title, sessionIDs: found.map(({ id }) => id) })
    return found[0]
  })

  /** Creates the session unless another one has its title. */
  const begin = (sessionID: SessionID, created: Draft, title: string) =>
    log.append(sessionID, [created], { expectedSeq: -1, commit: store.isOnlyOne(title) }).pipe(
      Effect.zipRight(store.get(sessionID)),
      // Already removed again.
      Effect.catchTag("SessionNotFound", () => new TitleTaken({ title })),
      Effect.map((session) => ({ session, isNew: true }))
    )

  /** Runs `creation` only if there is no such session. */
  const findOrBegin = <E, R>(
    title: string,
    directory: string,
    creation: Effect.Effect<{ readonly sessionID: SessionID; readonly created: Draft }, E, R>
  ) =>
    Effect.gen(function* () {
      const session = yield* find(title, directory)
      if (session !== undefined) return { session, isNew: false }
      const { created, sessionID } = yield* creation
      return yield* begin(sessionID, created, title)
    }).pipe(Effect.retry({ times: attempts, while: isTaken }), Effect.catchIf(isTaken, Effect.die))

  return { findOrBegin }
})

/** A job's session has source `cron`. */
const originOf = Effect.fnUntraced(function* ({ cronJobID, source }: CreateOptions) {
  if (source !== undefined) yield* validate("source", SessionOrigin.fields.source.from, source)
  if (cronJobID === undefined) return source === undefined ? {} : { source }
  if (source === "interactive") {
    return yield* new InvalidInput({ field: "source", details: "a session with a cronJobID has the source cron" })
  }
  return { source: "cron" as const, cronJobID: yield* validate("cronJobID", Schema.NonEmptyString, cronJobID) }
})

/** UTF-16 code units: every request carries them. */
const mostInstructions = 100_000

const instructionsOf = Effect.fnUntraced(function* ({ instructions }: CreateOptions) {
  if (instructions === undefined) return {}
  return {
    instructions: yield* validate("instructions", Schema.String.pipe(Schema.maxLength(mostInstructions)), instructions)
  }
})

const makeCreated = Effect.gen(function* () {
  const store = yield* SessionStore
  const agents = yield* Agents
  const models = yield* ModelResolver

  const knownParent = Effect.fnUntraced(function* (parentID: SessionID) {
    const refuse = (details: string) => new InvalidInput({ field: "parentID", details })
    const id = yield* validate("parentID", SessionID, parentID)
    yield* Effect.catchTag(store.get(id), "SessionNotFound", ({ message }) => Effect.fail(refuse(message)))
    // Bounded, so that a lookup of ancestors sees all of them: an ancestor's denials apply below.
    if ((yield* store.ancestors(id)).length >= deepestFamily) {
      return yield* refuse(`${id} already has ${deepestFamily} ancestors`)
    }
  })

  /** Builds the creation event, with all fields validated. */
  return Effect.fnUntraced(function* (options: CreateOptions, location: Location) {
    const { agent, parentID } = options
    const model = options.model === undefined ? undefined : yield* knownModel(models, options.model)
    const title = options.title === undefined ? undefined : yield* validate("title", Schema.String, options.title)
    if (agent !== undefined) yield* knownAgent(agents, agent, location, parentID !== undefined)
    if (parentID !== undefined) yield* knownParent(parentID)
    return draft("session.created", {
      location,
      ...present({ agent, model, title, parentID }),
      ...(title !== undefined && options.provisional === true ? { provisional: true as const } : {}),
      ...(yield* originOf(options)),
      ...(yield* instructionsOf(options))
    })
  })
})

export const make = Effect.fnUntraced(function* ({ place }: Locations, placements: Placements) {
  const store = yield* SessionStore
  const identifiers = yield* Identifiers
  const titles = yield* makeTitles
  const created = yield* makeCreated

  const existing = (sessionID: SessionID) =>
    store.get(sessionID).pipe(
      Effect.asSome,
      Effect.catchTag("SessionNotFound", () => Effect.succeedNone)
    )

  const create: Sessions["Type"]["create"] = Effect.fn("Sessions.create")(function* (options) {
    const sessionID =
      options.id === undefined ? yield* identifiers.session : yield* validate("id", SessionID, options.id)
    if (options.id !== undefined) {
      const found = yield* existing(sessionID)
      if (Option.isSome(found)) return found.value
    }
    const id = options.id === undefined ? undefined : sessionID
    const placement = options.placement === undefined ? undefined : yield* placements.check(options.placement)
    if (placement !== undefined) {
      const found = yield* placements.occupant(placement.address, id)
      if (Option.isSome(found)) return found.value
    }
    const event = yield* created(options, yield* place(options.location))
    return yield* placements.begin(sessionID, event, id, placement)
  }, Effect.uninterruptible)

  const named: Sessions["Type"]["named"] = Effect.fn("Sessions.named")(function* (options) {
    const title = plain(yield* validate("title", Schema.NonEmptyString, options.title))
    const location = yield* place(options.location)
    const made = Effect.all({ sessionID: identifiers.session, created: created({ ...options, title }, location) })
    return yield* titles.findOrBegin(title, location.directory, made)
  }, Effect.uninterruptible)

  return { create, named }
})
