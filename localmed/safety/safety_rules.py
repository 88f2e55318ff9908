"""The safety role by rule: wordings of wanting to die, of asking how, and of what only sounds like it. Our lists.

Measured once on held-back texts of our own hand (tests/benchmarks/safety.py), with the likeness of ``safety_likeness``
after it and without a chat model. Plain questions: the message goes to 13 of 14 English and 13 of 14 Chinese texts that
must get it (wordings alone: 7 and 10), and to 1 of 15 and 1 of 15 others. Indirect wordings: to 17 of 24 and 17 of 24
(wordings alone: 0 and 4), and to 0 of 24 and 4 of 24 others. So of those who say it indirectly three in ten are missed,
and one Chinese look-alike in six gets the message. No question of staff was refused by the likeness.
"""

from __future__ import annotations

import re

from localmed.safety.safety import SafetyInput, Screening


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_HARM = (
    r"(die|be dead|kill(ing)? myself|end(ing)? (it|my (own )?life|things)|tak(e|ing) my (own )?life"
    r"|hang(ing)? myself|suicide)"
)

_SUBJECT = _any(
    r"\b(kill\w*|suicid\w*|die|dies|dying|dead|death|lethal|fatal|deadly|overdos\w*|self-?harm\w*|poison\w*)\b",
    r"\b(myself|my life|wake up|live any)\b",
    r"死|致命|自杀|轻生|自尽|自残|活|生命(?!体征)|中毒|农药|过量|割腕|跳楼|上吊|烧炭|解脱|了断|伤害自己|安乐",
)
# Said of oneself, whoever one is.
_DISCLOSED = _any(
    rf"\bi('d| would| really| just| often| do)* (want|wish|long|hope|like|plan|intend|need|am going|am planning"
    rf"|am ready) to {_HARM}\b",
    rf"\bi('m| am|'ve been| have been| keep| was| can'?t stop)* ?(having |been )?(think\w*|thought\w*|plan\w*"
    rf"|going|tempted|ready|about)"
    rf"( \w+)? (of|about|to|on) {_HARM}",
    rf"\bi('ll| will| might| may| could| should| must)\b( \w+)? {_HARM}\b(?! of\b)",
    r"\b(kill(ing)?|hang(ing)?|drown(ing)?|shoot(ing)?|poison(ing)?|overdos(e|ing)) myself\b"
    r"|\bend(ing)? (it all|my (own )?life)\b"
    r"|\btak(e|ing) my (own )?life\b|\bget it (all )?over with\b",
    r"\b(want|wanting|urge|going|like|need|plan\w*) to (hurt|harm|cut|injure) myself\b"
    r"|\b(been|keep|started) (cutting|harming|hurting|burning) myself\b"
    r"|\bself-?harm(ing)? myself\b|\bcut(ting)? myself (on purpose|again|deeper)\b",
    r"\bi (don'?t|do not|no longer|never) (really )?(want|wish) to (live|be alive|be here|go on|wake up|exist"
    r"|carry on)\b"
    r"|\bi (can'?t|cannot) (go on|take it|live like this|bear it)( any ?(more|longer))?\b(?=.*\b(wish|dead|die"
    r"|end|over)\b|\s*[.!]?$)"
    r"|\bwish i (was|were|had been|had never been) (dead|born)\b|\brather be dead\b|\bbetter off (dead|without me)\b",
    r"\bi('m| am| feel|'ve been| have been)( \w+){0,3} suicidal\b"
    r"|\bno (reason|point) (to|in) (live|living|go|going) on?\b|\bnothing to live for\b",
    r"\b(sleep|bed)\b.{0,20}\bnever wake\b|\b(i|would i|and)\b.{0,20}\bnot wake up (again|any ?more)\b",
    r"\bjump(ing)? (off|from|in front of) (the|a) (bridge|roof|balcony|train|window|cliff)\b",
)
_DISCLOSED_CHINESE = _any(
    r"(想|要|打算|准备|决定|计划|恨不得|老是?想|总想)(去|要|着)?(自杀|轻生|自尽|寻死|跳楼|跳河|上吊|割腕|烧炭"
    r"|自残|伤害自己|弄伤自己|一了百了|了断|一死了之|结束(我|自己)?(的)?(生命|一切|这条命))",
    r"(我|真的?|好|很|老|总|只|就|有点|都|不如|还不如|觉得)(是)?想(去)?死(?!你|我|她|他|了我)"
    r"|^想死(?!你|我|她|他)|不如死了|死了算了|活着.{0,4}没(有)?(什么)?(意思|意义|劲).{0,12}(死|了|算)",
    r"不想(再)?活|活不下去|不想(再)?活下去|活够了|(一了百了|解脱)(了|吧|算了)?$|一了百了|是不是就解脱"
    r"|结束(我|自己)的生命|真想(跳|死)",
    r"(从|往).{0,6}(楼|桥|窗).{0,4}跳(下去)?|想.{0,6}跳下去|睡过去.{0,8}(不醒|醒不)|再也(不要|不想|不)醒",
)
_DISCLOSED_TOO = _any(
    r"\b(going|about|ready) to do it (tonight|today|now|soon|this)\b"
    r"|\bwant (it|this|everything|life)( all)? to (be over|stop|end)\b",
    r"\b(no|lost (the|my|all)|without (the|any)) (will|wish|desire|reason) to (live|go on|carry on)\b"
    r"|\bi (can'?t|cannot) do this any ?more\b",
    r"\bmy (own )?(arms?|wrists?|legs?|thighs?|skin)\b.{0,20}\b(blade|razor|knife|scissors)\b",
    r"\bi wish (a|the|some) .{0,20}\bwould (hit|kill|take|shoot)"
    r"|\b(say|saying|said|write|written|wrote) (goodbye|my will|a farewell)\b",
    r"\b(want|going|plan\w*|like) to disappear\b|\bgone (for good|forever)\b|\bi('m| am) a burden\b"
    r"|\bend my (suffering|misery|days)\b",
    r"(今晚|今天|马上|明天|我).{0,4}(就|要)动手|谁(也|都)别(拦|找)"
    r"|(没有?|失去|没了)(了)?.{0,4}活(下去)?的(念头|勇气|意愿|动力|希望)",
    r"不想(再)?撑|撑不(下去|住了)|(绳|刀|药|安眠药|农药).{0,6}(准备|买|备)好了"
    r"|刀(片)?.{0,4}(划|割).{0,4}(手|腕|臂|腿)",
    r"(想|让|被).{0,8}(撞|淹|摔|毒)死|服毒|遗书|遗言|告别(了|信)|我(是|成了).{0,4}(累赘|负担)"
    r"|永远(睡着|消失|离开)|离开这个世界",
    r"\blife (isn'?t|is not|is no longer|not) worth (living|it)\b"
    r"|\b(nobody|no one|no-one) would (miss|notice|care)\b",
    r"\b(cut|cutting|slash\w*|burn\w*|scratch\w*) (up |into )?my (own )?(arms?|wrists?|legs?|thighs?"
    r"|skin)\b(?=.*\b(again|worse|on purpose|urge|stop)\b)",
    r"\b(rather|hope (i|to)|wish (i|to)|want to|could just|would)\b.{0,20}\b(not|never|don'?t"
    r"|didn'?t) (to )?(wake up|exist)\b",
    r"\b(finish|do|done) (me|myself) (off|in)\b|\bbetter (if|when) i('m| am|'d| was| were)( not|n'?t"
    r"| no longer) (here|around|alive)\b",
    r"活(着|得)(太|好|很|真)?(累|苦|痛苦)|(割|划|烫|掐|打)(了)?(伤)?(自己|我)(的)?(手|腕|胳膊|腿|身)"
    r"|自己.{0,4}(割|划)(手|腕)",
    r"(希望|但愿|要是|最好|巴不得).{0,10}(不(要|会|用|再)?醒|醒不|不在了|死)|消失.{0,8}(没人|也好|就好)"
    r"|没有我.{0,8}(更好|会好)",
)
# For patients, words of dying beside words of a means are enough.
_INDIRECT_CHINESE = _any(  # of oneself, without a word of dying
    r"(攒|存|藏|囤)(了|着|起|够|下|好)?.{0,8}(安眠药|安定|止痛|药).{0,14}(走|那一天|那天|随时|时候|一起)"
    r"|(站|走|爬).{0,3}(楼顶|天台|桥上|阳台|窗台|站台).{0,16}(迈|跨|跳|往下|倒|水在叫)",
    r"(结束|了结)(掉)?(这|我|自己)?(的)?(一切|所有|生命|这条命)|(早点|自己|自我)了结|了结自己"
    r"|想(要|早点|快点|去|彻底)?(解脱|消失|一走了之|从这个世界)",
    r"(恨|后悔).{0,6}(还活着|没死)|盼(着|望).{0,6}(早点走|死)|(来世|下辈子)再(报|还|见)|不配活|活着就是受罪|命也不要"
    r"|(告别|绝笔|诀别)的?信|(离开|告别|留恋)(这个|这)?(人世|人间)|(世|人)间?不值得"
    r"|(没|没有|失去|看不到).{0,4}(活着|活下去|留下)的?(理由|意义|必要)",
)
_NO_RETURN_CHINESE = _any(  # of a dose or a way, without a word of dying
    r"(多少|几[片粒颗瓶张口天]|多大|多久|哪种|什么|怎[么样]|最少|一整瓶|全).{0,22}(救不[回活]|没救|没命|醒不[来过]|不再醒"
    r"|回不来|有去无回|永远昏迷|来不及抢救|没法挽回|人就没|会走$|走得?(安静|安详|快))",
    r"(悄无声息|不知不觉|没有痛苦|无痛|安静|安详)地?(走|离开)|睡着(走|以后不)|安乐死",
)
_DEATH = _any(
    r"\b(die|dying|dead|death|kill|kills|killed|killing|lethal|fatal|deadly|suicid\w*)\b"
    r"|\bfinish (me|myself|somebody) off\b"
    r"|\bend (it|me|everything)\b|\bheart\b.{0,10}\bstop\b|\bsleep (forever|for good)\b|\b(not|never) wake up\b"
    r"|\bstop (my|the|a) heart\b",
    r"死|要命|没命|丧命|送命|不醒|醒不来|结束(这)?一切|心脏.{0,4}停|永远睡|都结束",
)
_MEANS_WORD = _any(
    r"\b(pills?|tablets?|capsules?|units?|blockers?|syrup|salt|on purpose|deliberately|drank|drink|dose|doses"
    r"|amount|grams?|mg|ml|box|bottle|overdos\w*|swallow\w*|inject\w*"
    r"|insulin|drugs?|medicines?"
    r"|medication|alcohol|bleach|poison\w*|mix\w*|gas|rope|knife|blade|razor|bridge|train|drown\w*|hang\w*"
    r"|peaceful\w*"
    r"|painless\w*|quiet\w*|quick\w*|fast|easy|easily|stop(ped|ping)? (taking )?my)\b",
    r"单位|一次|故意|喝|吃|片|粒|颗|瓶|盒|药|酒|胰岛素|头孢|安眠|安定|注射|打针|输液|克|毫升|剂量|悄悄|安静"
    r"|痛快|不痛|痛苦|停了|绳"
    r"|刀|割|跳|煤气|农药|毒",
)
_KIN = _any(  # who died, and of what, is a family history
    r"\bmy \w+ (who )?(has |had )?(died|passed|killed (himself|herself)|was killed)\b|\b(died|killed) (of|from|by)\b",
    r"(去世|过世|病逝|死于|走了|(爸|妈|爷爷|奶奶|叔叔|舅舅|姑姑|阿姨|哥哥|姐姐|弟弟|妹妹|朋友).{0,8}(自杀|死)了)",
)
# A way to die or a dose that kills.
_MEANS = _any(
    r"\b(lethal|fatal|deadly|killing)\b.{0,12}\b(dose|doses|amount|quantity|overdose|level|number)\b",
    r"\bhow (many|much|long)\b.{0,70}\b(kill|kills|to die|die|death|dead|stop (a|my|the) heart|fatal|lethal"
    r"|deadly)\b",
    r"\b(enough|sufficient|needed|takes?)\b.{0,20}\bto (die|kill|be fatal|end)\b"
    r"|\b(kill|kills) (me|a (person|man|woman|human|child|adult)|someone|somebody|you|him|her)\b",
    r"\b(easiest|quickest|fastest|best|painless|least painful|surest|gentlest|simplest)\b.{0,25}\b(to die"
    r"|suicide|way out|death|to end|method)\b"
    r"|\bsuicide method|\bhow (do|can|could|to|would) (i |you |one |people |someone )?(hang|kill|poison"
    r"|drown) (myself|yourself|oneself|themselves)\b"
    r"|\bhow (to|do|can|could|would) (\w+ )?(die|commit suicide|overdose)\b|\bcommit suicide with\b"
    r"|\bpainless(ly)? (die|death|suicide)\b",
    r"\bpoisons?\b.{0,40}\b(undetect\w*|can'?t be (detected|traced)|kills?)\b|\bhow long\b.{0,30}\bto die\b"
    r"|\bwhere to cut\b",
)
_MEANS_CHINESE = _any(
    r"致死(的)?(剂量|量|浓度|药量)?|致命(的)?(剂量|量|药)?(?!的?(疾病|危险|并发|心律|伤))",
    r"(吃|喝|服|打|注射|吞|割|吸|输).{0,24}(会不会|能不能|可不可以|会|能|可以|才|就|让人|使人)(.{0,4})(死|没命|丧命)",
    r"多少.{0,24}(死|没命|致命|丧命)|(喝|吃|服)(了)?.{0,8}(多久|多长时间)(会|能|才)?.{0,2}死",
    r"(怎么|如何|怎样|什么(方法|办法)).{0,14}(自杀|去死|死掉|安乐死|才能死|死得|寻死|结束生命)"
    r"|(自杀|死).{0,6}(最不|不).{0,2}(痛苦|疼|难受)"
    r"|自杀.{0,6}(方法|方式|办法)|安乐(地)?死|无痛.{0,3}(死|自杀)|不被发现.{0,10}(毒|死)|自杀.{0,6}不被发现",
    r"烧炭|割腕.{0,6}(多|怎)|几楼.{0,4}(行|死|够)|农药.{0,6}死|毒药",
)
# How to, whoever asks; of staff unless they ask about treating or assessing it.
_WAYS = _any(
    r"\bhow (to|do|can|could|would) (\w+ )?(die|commit suicide|overdose)\b|\bcommit suicide with\b"
    r"|\bpainless (suicide|death)\b"
    r"|\bsuicide method\b",
    r"(怎么|如何|怎样|什么(方法|办法)).{0,14}自杀|自杀.{0,6}(最不|不).{0,2}(痛苦|疼|被发现)|不被发现.{0,10}(毒|死)",
)
_MISTAKE = _any(
    r"\b(by (mistake|accident)|accidental\w*|forgot\w*|mistakenly|my (child|toddler|baby|dog|cat) (swallow|ate"
    r"|took)\w*)\b",
    r"不小心|误(服|食|吞|吃)|吃错|忘(了|记)|多吃了一",
)
_IDIOM = _any(
    r"\bso \w+ (that )?i could (die|kill)\b|\bkill\w* (the |all |my )?(germs|bacteria|virus\w*|lice|mites"
    r"|fungus|weeds|pain)\b"
    r"|\bwhat kills the germs\b|\bdead (space|skin)\b|\b(sudden|brain|cell|cardiac) death\b|\bkilling me\b"
    r"|\b(pain|ache|headache|back|cough|noise|heat) kills me\b|\b(am i|that i'?m|that i am|afraid of) (going to die"
    r"|about to die|dying)\b|\bsuicidal (thoughts?|ideas?) as a side"
    r"|\bdying (for|to (know|see|try))\b|\bto die for\b"
    r"|\bscared to death\b|\bbored to death\b"
    r"|\bkill (time|germs|bacteria|lice|\w+ lice)\b",
    r"[疼痛痒累热冷困饿渴烦气吓笑急]死|死(活|板|角|机|心)|死皮|该死|坏死|猝死|死胎|死腔|死骨"
    r"|杀死(?!(我|自己|人))|死亡(率|病例)|得要死|死海|死结|死记",
)
_WARNING = _any(  # what the packet says is asked about
    r"\b(label|leaflet|package insert|packet) (says|said|warns|states|mentions)\b", r"(说明书|标签)(上|里)?(写|说|有)"
)
# Of somebody else, as staff report it.
_REPORTED = _any(
    r"\b(patients?|man|woman|girl|boy|teenager|adolescents?|client|resident|he|she|they|relatives?|mother"
    r"|father|son|daughter)\b"
    r".{0,40}\b(says?|said|states?|stated|tells?|told|reports?|reported|wants?|wishes|tried|attempted|threat\w+)\b",
    r"(自杀|轻生|想死)(倾向|念头|意念|风险)?的(患者|病人|来访者|孩子|学生|人|老人|青少年|家属)",
    r"(患者|病人|病员|家属|他|她|孩子|学生|来访者|老人).{0,12}(说|诉|称|表示|想|不想|企图|扬言|有)",
)
_FIRST_PERSON = _any(r"\b(i|me|my|myself|i'm|i've|i'd)\b", r"我(?!们|院|科)")
_AS_WORK = _any(
    r"\b(manage\w*|treat\w*|assess\w*|antidote|antidotes|reverse|screen\w*|guideline|protocol|risk factors?"
    r"|nomogram|indicated|warning|label|charcoal|talk (to|with)|ask about|recogni\w*|prevent\w*)\b",
    r"救治|治疗|处理|评估|解毒|抢救|干预|危险因素|洗胃|预防|指南|筛查|沟通|识别|倾向|活性炭|告知|上报",
)
_DISCLOSURES = (_DISCLOSED, _DISCLOSED_CHINESE, _DISCLOSED_TOO, _INDIRECT_CHINESE)


def screen(task: SafetyInput) -> Screening:
    """What the rules recognise in the text."""
    text = " ".join(task.question.replace("’", "'").split())
    subject = bool(_SUBJECT.search(text))
    plain = _IDIOM.sub(" ", text)
    disclosed = any(disclosure.search(plain) for disclosure in _DISCLOSURES)
    if disclosed and not _of_another(text, task):
        return Screening("disclosure", subject)
    for_anyone = task.audience == "patient" or _WAYS.search(plain) or _FIRST_PERSON.search(text)
    patient = task.audience == "patient" and not (_KIN.search(plain) or _WARNING.search(plain))
    by_words = patient and _DEATH.search(plain) and _MEANS_WORD.search(plain)
    no_return = patient and _NO_RETURN_CHINESE.search(plain)
    means = by_words or _MEANS.search(plain) or _MEANS_CHINESE.search(plain) or no_return or _WAYS.search(plain)
    if means and for_anyone and not _MISTAKE.search(text) and not (task.audience == "staff" and _AS_WORK.search(text)):
        return Screening("means", subject)
    return Screening("", subject)


def of_oneself(text: str) -> bool:
    """Whether somebody writes of themselves, and not of a patient or of their work."""
    return bool(_FIRST_PERSON.search(text)) and not (_REPORTED.search(text) or _AS_WORK.search(text))


def _of_another(text: str, task: SafetyInput) -> bool:
    """Whether staff report what somebody else said."""
    return task.audience == "staff" and bool(_REPORTED.search(text))
