/**
 * What a person can do with the session that is shown, besides prompting it: rename it, give it another agent or model, take the
 * last prompt back, fork it, compact it, save its events. Spec: IP-521 in specs/inspector.md.
 */
import { useEffect, useState } from "preact/hooks"
import type { OfferedAgent, OfferedModels } from "@daybook/api/group/ServerApi"
import type { Session } from "@daybook/log/domain/Message"
import type { OpenSession } from "../state/OpenSession.ts"
import { go, hrefOf } from "../state/Route.ts"
import { useAction } from "./Action.ts"

interface Choices {
  readonly agents: ReadonlyArray<string>
  readonly models: ReadonlyArray<string>
}

/** The agents and models that the server offers in the session's folder; none if it does not say. */
const offered = async ({ api }: OpenSession, { location }: Session): Promise<Choices> => {
  const [agents, models] = await Promise.all([
    api.get<ReadonlyArray<OfferedAgent>>("/agents", { directory: location.directory }).catch(() => []),
    api.get<OfferedModels>("/models").catch(() => ({ models: [] }))
  ])
  return {
    agents: agents.map(({ name }) => name),
    models: models.models.map(({ model }) => `${model.providerID}/${model.id}`)
  }
}

/** A value with suggestions; Enter or leaving the field sets it. */
const Field = ({
  label,
  onChange,
  suggestions = [],
  value
}: {
  readonly label: string
  readonly value: string
  readonly suggestions?: ReadonlyArray<string>
  readonly onChange: (value: string) => void
}) => {
  const list = `suggested-${label.toLowerCase()}`
  return (
    <label>
      {label}
      <input
        list={list}
        value={value}
        onChange={({ currentTarget }) => {
          const next = currentTarget.value.trim()
          if (next !== "" && next !== value) onChange(next)
        }}
      />
      <datalist id={list}>
        {suggestions.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </label>
  )
}

/** `provider/model`; a model's id may contain slashes. */
const modelRef = (text: string) => {
  const slash = text.indexOf("/")
  return { providerID: text.slice(0, slash), id: text.slice(slash + 1) }
}

export const SessionActions = ({ record, session }: { readonly record: Session; readonly session: OpenSession }) => {
  const { error, isBusy, run } = useAction()
  const [isOpen, setOpen] = useState(false)
  const [choices, setChoices] = useState<Choices>({ agents: [], models: [] })
  const [done, setDone] = useState("")
  useEffect(() => {
    if (isOpen) void offered(session, record).then(setChoices)
  }, [isOpen, session])
  const act = (what: string, work: () => Promise<unknown>) => () => {
    setDone("")
    void run(work).then((isDone) => isDone && setDone(what))
  }
  const { agent = "", model, title = "" } = record
  const button = (name: string, what: string, work: () => Promise<unknown>) => (
    <button type="button" disabled={isBusy} onClick={act(what, work)}>
      {name}
    </button>
  )
  return (
    <div class="fold session-actions">
      <button type="button" class="fold-title" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Actions
      </button>
      {isOpen ? (
        <div class="fold-body">
          <div class="fields">
            <Field label="Title" value={title} onChange={(next) => act("Renamed.", () => session.rename(next))()} />
            <Field
              label="Agent"
              value={agent}
              suggestions={choices.agents}
              onChange={(next) => act("The next turn has this agent.", () => session.switchAgent(next))()}
            />
            <Field
              label="Model"
              value={model === undefined ? "" : `${model.providerID}/${model.id}`}
              suggestions={choices.models}
              onChange={(next) => act("The next turn has this model.", () => session.switchModel(modelRef(next)))()}
            />
          </div>
          <div class="actions">
            {button("Undo", "The last prompt was taken back.", () => session.undo())}
            {button("Redo", "The undo was taken back.", () => session.redo())}
            {button("Compact", "A compaction was requested.", () => session.compact())}
            {button("Fork", "", async () => {
              const forked = await session.fork()
              if (forked !== undefined) go(hrefOf(forked.session.id, "transcript"))
            })}
            {button("Save events", "The events were saved.", () => session.save())}
          </div>
          <p class="soft" role="status">
            {done}
          </p>
          {error === undefined ? undefined : (
            <p class="problem" role="alert">
              {error}
            </p>
          )}
        </div>
      ) : undefined}
    </div>
  )
}
