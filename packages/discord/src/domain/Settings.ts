/** `discord.yaml`: the channels of the bot, and who may do what there. Pure. Spec: DI-50, DI-51 in specs/discord.md. */
import { Either, Schema } from "effect"
import {
  amount,
  boolean,
  counting,
  decodeParsed,
  expects,
  type Issue,
  name,
  optional,
  parseYaml,
  shaped,
  someText
} from "@daybook/core/definition/Yaml"

const id = Schema.String.pipe(Schema.pattern(/^\d{1,20}$/), expects('an id of Discord in quotes: "1029384756"'))

/** Whom a right is given to. */
export const People = Schema.Struct({
  /** Every member who can write in the channel. */
  everyone: optional(boolean),
  roles: optional(Schema.Array(id).pipe(shaped("a list of ids"))),
  users: optional(Schema.Array(id).pipe(shaped("a list of ids")))
})
export type People = typeof People.Type

const model = Schema.String.pipe(Schema.pattern(/^[^/\s]+\/\S+$/), expects("a model: provider/model"))

export const ChannelSettings = Schema.Struct({
  folder: someText,
  agent: optional(name),
  /** `provider/model`. */
  model: optional(model),
  /** What each of its sessions may spend. */
  budget: optional(Schema.Struct({ cost: optional(amount), tokens: optional(counting) })),
  ask: optional(People),
  approve: optional(People),
  administer: optional(People)
})
export type ChannelSettings = typeof ChannelSettings.Type

/** The whole file. */
export const Settings = Schema.Struct({
  channels: Schema.Record({ key: id, value: ChannelSettings }).pipe(shaped("a map from ids of channels"))
})
export type Settings = typeof Settings.Type

export const read = (text: string): Either.Either<Settings, ReadonlyArray<Issue>> =>
  Either.flatMap(parseYaml(text), (parsed) => decodeParsed(Settings, parsed))

export const rights = ["ask", "approve", "administer"] as const
export type Right = (typeof rights)[number]

/** A person in a guild. */
export interface Person {
  readonly id: string
  readonly roles: ReadonlyArray<string>
}

const includes = ({ everyone = false, roles = [], users = [] }: People, person: Person): boolean =>
  everyone || users.includes(person.id) || person.roles.some((role) => roles.includes(role))

export const may = (settings: ChannelSettings, person: Person, right: Right): boolean =>
  rights.slice(rights.indexOf(right)).some((each) => {
    const people = settings[each]
    return people !== undefined && includes(people, person)
  })
