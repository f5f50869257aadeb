"""The words that prompts are made of: running text written for this purpose, and short words for nonces."""

from __future__ import annotations

from functools import cache

PASSAGES = """
A harbour town keeps its own calendar. Before light the first vans arrive at the market hall, and the men who unload
them speak quietly, as if the boats could be woken. By six the ice has been broken, the scales have been wiped, and
the woman who runs the coffee stand has sold her first thirty cups. She knows who takes sugar and who has stopped
taking it, which of the skippers is waiting for news from the hospital, and how much the price of diesel has changed
since Monday. When the tourists come, at ten, most of the day's work is already done.

The bridge was built in three summers because the river would not allow it in winter. Its engineer had drawn five
arches, the council paid for four, and the missing one explains why the road bends so sharply on the northern bank.
Students are shown the bend as an example of a decision that looked cheap for one year and has been expensive for a
hundred and twenty. Every few decades somebody proposes to straighten it; every time the survey finds that the soil
behind the abutment is younger than it seems, and the proposal is filed with the others.

To keep a clock honest you need a second clock, and to choose between the two you need a third. The observatory had
nine. They stood in a cellar whose temperature was held within a tenth of a degree, on piers that went down to the
rock and touched the building nowhere. Once a week an assistant compared them, wrote nine numbers in a column, and
worked out which of them had wandered. He was not allowed to correct any of them. A clock that has been corrected
tells you about the person who corrected it; a clock that has been left alone tells you about time.

Bread teaches patience by refusing to be hurried. Flour, water and salt are mixed in a minute, and then nothing that
the baker does will help as much as waiting. In a warm kitchen the dough doubles in two hours; in a cold one it needs
the night, and tastes better for it. The hands learn to judge by touch what the recipe cannot say in grams: whether
the surface springs back slowly, whether the bubbles under the skin are many and small or few and large, and whether
the oven, which has its own moods, is ready. A loaf that was rushed looks the same until it is cut.

The library moved its maps to the top floor because paper is heavy but water is worse. In the old basement a single
pipe had ruined eleven drawers in one night, among them the only survey of the valley from before the dam. Copies were
found later in three different countries, each with a different mistake, and by laying them over one another a
geographer could work out what the original must have shown. Her account of that work is only forty pages long, and it
is read today mostly by people who restore damaged records of a quite different kind.

When a hive is about to swarm the bees become gentle. They have eaten as much as they can carry, they have nothing
left to defend, and for an hour or so a person can stand among ten thousand of them without a veil. The scouts have
already looked at hollow trees and chimneys and an empty letter box. They argue by dancing, each for the place that
she has seen, and a scout whose place is poor dances for a shorter time. Nobody counts the votes. At some moment
nearly all of them are dancing the same dance, and the whole cloud lifts and goes.

Most of what is called intuition in a repair shop is memory with the labels worn off. The mechanic hears a pump and
says that its bearing will fail before the spring; asked how he knows, he shrugs. But he has heard some four hundred
pumps, thirty of them shortly before they failed, and his ear has kept an average of those thirty. The young engineer
with her recording equipment can show the average on a screen. It took her a year to make the screen agree with the
shrug, and since then the two of them have been paid to listen to pumps in four other factories.

There is a path along the ridge that is drawn on no map, because it moves. Sheep made it, walkers use it, and each
winter the frost takes away a piece of the edge so that the next year everybody steps a little further in. A farmer
whose family has lived below it for six generations says that it has crossed two of his fields. He does not mind. What
bothers him are the people who stop in the middle of the path to look at their telephones and ask him, while he is
carrying a fence post on each shoulder, where exactly the path is.

An orchestra tunes to the oboe since it is the instrument least able to change. Strings can be tightened and brass can
be pulled, but the oboe is what its maker and its reed have made of it, so the others come to it. In the second row
the violist who joined last autumn listens for the moment when the many notes become one. She has noticed that it
never happens at the loudest point. It happens slightly later, when the players have stopped trying to be heard and
have begun to hear, and it lasts for about as long as one breath.

The ferry carries forty cars in summer and four in winter, and costs the same to run. Twice the county has offered the
island a bridge instead. The islanders voted against it both times, by nearly the same majority, though almost none of
the voters were the same people. Asked for reasons they spoke about prices, about noise, about the school. Only the
captain, who is from the mainland and has no vote, said what the visitors suspect: that a place which can be reached
at any time of day is a place where nobody needs to be expected.
"""

NONCE_TEXT = """
time year people way day man thing woman life child world school state family student group country problem
hand part place case week company system program question work government number night point home water room
mother area money story fact month lot right study book eye job word business issue side kind head house
service friend father power hour game line end member law car city name team minute idea body back parent
face others level office door health person art war history party result change morning reason research girl
guy moment air teacher force education foot boy age policy music market sense nation plan college interest
death course experience effect use class control field development role effort rate heart drug show leader
light voice wife police mind
"""
NONCE_WORDS = tuple(NONCE_TEXT.split())
"""Common words: one token each, with a space before, in most vocabularies."""

FILLERS = ("and", "the", "of", "in", "to", "it", "is", "on")


@cache
def corpus() -> tuple[str, ...]:
    """All words of the passages, in order."""
    return tuple(PASSAGES.split())
