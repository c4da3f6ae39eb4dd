/** The Location of a Location-scoped service. Its `directory` is canonical: absolute, without symbolic links. */
import { Context } from "effect"
import type { Location } from "./Values.ts"

/** The Location that a layer is built for. */
export class CurrentLocation extends Context.Tag("@daybook/log/CurrentLocation")<CurrentLocation, Location>() {}
