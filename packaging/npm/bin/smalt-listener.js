#!/usr/bin/env node
import { launch } from "../lib/launch.js";

launch("smalt-listener");
