/** Decides who may do what in a channel. Pure. Spec: DI-51 in specs/discord.md. */
import type { ChannelSettings, People } from "./Settings.ts"

/** What a person can be allowed to do; each includes those before it. */
export const rights = ["ask", "approve", "administer"] as const
export type Right = (typeof rights)[number]

/** A person in a guild. */
export interface Person {
  readonly id: string
  readonly roles: ReadonlyArray<string>
}

const includes = ({ everyone = false, roles = [], users = [] }: People, person: Person): boolean =>
  everyone || users.includes(person.id) || person.roles.some((role) => roles.includes(role))

/** Whether the person has this right, or one that includes it. */
export const may = (settings: ChannelSettings, person: Person, right: Right): boolean =>
  rights.slice(rights.indexOf(right)).some((each) => {
    const people = settings[each]
    return people !== undefined && includes(people, person)
  })
